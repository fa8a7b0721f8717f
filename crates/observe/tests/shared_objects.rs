//! Objects that Machines of Cluster API share, without a cluster: the Cluster, its AzureCluster, the machine
//! pool.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use bringup_objects::cluster_api::{AzureCluster, AzureMachinePool, Cluster, Machine};
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::subject::{Place, Subject};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const BASE: &str = "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute";

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// A Machine of the cluster `prod`, as an API server would return it.
fn machine(kind: &str, id: Option<&str>) -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "clusterName": "prod", "providerID": id, "infrastructureRef": { "kind": kind, "name": "a" } },
    })
}

fn cluster(spec: &Value) -> Value {
    json!({ "metadata": { "name": "prod", "namespace": "n" }, "spec": spec })
}

/// The only subject in a list.
fn only(mut subjects: Vec<Subject>) -> Subject {
    assert_eq!(subjects.len(), 1, "{subjects:?}");
    subjects.remove(0)
}

#[test]
fn a_machine_is_held_while_it_or_its_cluster_is_paused_or_not_known() {
    let machines = MachineIndex::new(DEADLINE);
    let seen = |machine: Value| machines.machine_seen(read::<Machine>(machine)).unwrap().held;
    let plain = machine("AzureMachine", None);
    assert_eq!(seen(plain.clone()).as_deref(), Some("Cluster prod was not seen yet"));
    let paused = only(machines.shared_seen::<Cluster>(read(cluster(&json!({ "paused": true })))));
    assert_eq!(paused.held.as_deref(), Some("Cluster prod is paused"));
    let on = only(machines.shared_seen::<Cluster>(read(cluster(&json!({ "paused": false })))));
    assert_eq!(on.held, None);
    assert!(
        machines.shared_seen::<Cluster>(read(cluster(&json!({})))).is_empty(),
        "nothing is new"
    );
    let mut annotated = cluster(&json!({}));
    annotated["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
    assert!(only(machines.shared_seen::<Cluster>(read(annotated.clone()))).held.is_some());
    assert!(only(machines.shared_seen::<Cluster>(read(cluster(&json!({}))))).held.is_none());
    let mut own = plain.clone();
    own["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "true" });
    assert_eq!(seen(own).as_deref(), Some("Machine a is paused"));
    assert_eq!(seen(plain.clone()), None);

    let name = ("n".to_owned(), "prod".to_owned());
    assert!(only(machines.shared_gone::<Cluster>(&name)).held.is_some(), "Clusters are not listed");
    assert!(only(machines.listed("Cluster")).held.is_none(), "and now they are, without it");
    assert!(machines.listed("Cluster").is_empty(), "once is enough");
    assert_eq!(seen(plain), None);
}

#[test]
fn an_object_of_the_provider_that_is_paused_is_not_written_to() {
    let machines = MachineIndex::new(DEADLINE);
    machines.machine_seen(read(machine("AzureMachine", None))).unwrap();
    let mut object = json!({ "metadata": { "name": "a", "namespace": "n" } });
    assert!(
        machines.infra_machine_seen("AzureMachine", read(object.clone())).unwrap().mirror.is_some()
    );
    object["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
    let paused = machines.infra_machine_seen("AzureMachine", read(object)).unwrap();
    assert!(paused.mirror.is_none());
    assert_eq!(paused.trouble, None, "it was seen all the same");
}

fn site(name: &str, label: Option<&str>, host: &str) -> AzureCluster {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "n", "labels": {} },
        "spec": { "resourceGroup": format!("rg-{name}"), "subscriptionID": "S", "location": "eastus",
                  "controlPlaneEndpoint": { "host": host } },
    });
    if let Some(label) = label {
        object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = json!(label);
    }
    read(object)
}

fn reference(kind: &str, name: &str) -> Value {
    let host = json!({ "host": "cluster.example", "port": 6443 });
    json!({ "infrastructureRef": { "kind": kind, "name": name }, "controlPlaneEndpoint": host })
}

/// The ID of the subject's VM.
fn id(subject: &Subject) -> String {
    match &subject.place {
        Place::Known(id) => id.to_string(),
        Place::NotSaid | Place::Malformed(_) => String::new(),
    }
}

#[test]
fn the_cluster_says_which_azure_cluster_is_its_own_and_where_its_api_server_is() {
    let machines = MachineIndex::new(DEADLINE);
    machines.machine_seen(read(machine("AzureMachine", None))).unwrap();
    let behind = json!({ "metadata": { "name": "a", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z" } });
    let found = machines.infra_machine_seen("AzureMachine", read(behind)).unwrap();
    assert_eq!(found.place, Place::NotSaid);

    // Until the Cluster is seen, the AzureCluster is found by its label.
    let named = only(machines.shared_seen(site("x", Some("prod"), "azure.example")));
    assert!(id(&named).contains("/resourceGroups/rg-x/"), "{}", id(&named));
    assert!(machines.shared_seen(site("other", None, "")).is_empty(), "it is another one's");
    // Afterwards, the Cluster's reference decides.
    let seen = |spec: &Value| only(machines.shared_seen::<Cluster>(read(cluster(spec))));
    let told = seen(&reference("AzureCluster", "other"));
    assert!(id(&told).contains("/resourceGroups/rg-other/"), "{}", id(&told));
    assert_eq!(told.api_server.as_deref(), Some("cluster.example"), "the other has none");
    let with_host = only(machines.shared_seen(site("other", None, "other.example")));
    assert_eq!(with_host.api_server.as_deref(), Some("other.example"));
    let managed = seen(&reference("AzureManagedCluster", "other"));
    assert_eq!((managed.place, managed.labels.region), (Place::NotSaid, None));
    assert_eq!(managed.api_server.as_deref(), Some("cluster.example"));
}

/// A machine pool with conditions.
fn pool(mode: &str, conditions: &[Value]) -> AzureMachinePool {
    read(json!({
        "metadata": { "name": "pool", "namespace": "n" },
        "spec": { "location": "westus", "orchestrationMode": mode,
                  "template": { "vmSize": "Standard_D2s_v5", "osDisk": { "osType": "Windows" } } },
        "status": { "conditions": conditions },
    }))
}

fn told(kind: &str, severity: &str, reason: &str, at: &str) -> Value {
    json!({ "type": kind, "status": "False", "severity": severity, "reason": reason, "lastTransitionTime": at })
}

/// The Machine of an instance whose infrastructure machine has this metadata, which names the pool.
fn instance(machines: &MachineIndex, id: &str, metadata: &Value) -> Subject {
    machines.machine_seen(read(machine("AzureMachinePoolMachine", Some(id)))).unwrap();
    let mut object = json!({ "metadata": metadata, "spec": { "providerID": id } });
    object["metadata"]["name"] = json!("a");
    object["metadata"]["namespace"] = json!("n");
    machines.infra_machine_seen("AzureMachinePoolMachine", read(object)).unwrap()
}

#[test]
fn a_pool_speaks_for_its_instances() {
    let under = format!("{BASE}/virtualMachineScaleSets/set/virtualMachines/set_1a2b3c4d");
    let owner = json!({ "ownerReferences": [
        { "apiVersion": "v1", "kind": "Machine", "name": "a", "uid": "u" },
        { "apiVersion": "v1", "kind": "AzureMachinePool", "name": "pool", "uid": "p" },
    ] });
    let label = json!({ "labels": { "azuremachinepool.infrastructure.cluster.x-k8s.io/machine-pool": "pool" } });
    for metadata in [owner, label] {
        let machines = MachineIndex::new(DEADLINE);
        let alone = instance(&machines, &under, &metadata);
        assert_eq!((id(&alone), alone.labels.os), (under.clone(), None));
        let uniform = only(machines.shared_seen(pool("Uniform", &[])));
        assert_eq!(id(&uniform), under);
        assert_eq!(uniform.labels.os.as_deref(), Some("windows"));
        assert_eq!(uniform.labels.size.as_deref(), Some("Standard_D2s_v5"));
        assert_eq!(uniform.labels.region.as_deref(), Some("westus"));
        let flexible = only(machines.shared_seen(pool("Flexible", &[])));
        assert_eq!(id(&flexible), format!("{BASE}/virtualMachines/set_1a2b3c4d"));
    }
    let machines = MachineIndex::new(DEADLINE);
    instance(&machines, &under, &json!({}));
    assert!(machines.shared_seen(pool("Flexible", &[])).is_empty(), "no Machine uses it");
}

#[test]
fn what_a_pool_tells_of_concerns_the_machines_that_were_there() {
    let machines = MachineIndex::new(DEADLINE);
    let id = format!("{BASE}/virtualMachineScaleSets/set/virtualMachines/7");
    let owner =
        json!([{ "apiVersion": "v1", "kind": "AzureMachinePool", "name": "pool", "uid": "p" }]);
    instance(&machines, &id, &json!({ "ownerReferences": owner }));
    let (before, after) = ("2025-12-31T23:59:59Z", "2026-01-01T00:05:00Z");
    let after_all: Option<Timestamp> = Some(after.parse().unwrap());
    for (condition, wanted) in [
        (told("BootstrapSucceeded", "Error", "Failed", after), after_all),
        (told("BootstrapSucceeded", "Info", "Creating", after), None),
        (told("ScaleSetRunning", "Error", "Failed", after), after_all),
        // The provider gives this condition the severity `Info`.
        (told("ScaleSetRunning", "Info", "ScaleSetProvisionFailed", after), after_all),
        (told("ScaleSetRunning", "Info", "ScaleSetCreating", after), None),
        (told("ScaleSetRunning", "Error", "Failed", before), None),
        (told("ScaleSetModelUpdated", "Error", "Failed", after), None),
    ] {
        machines.shared_gone::<AzureMachinePool>(&("n".to_owned(), "pool".to_owned()));
        let found = only(machines.shared_seen(pool("Uniform", std::slice::from_ref(&condition))));
        assert_eq!(found.provider_failure, wanted, "{condition}");
    }
}
