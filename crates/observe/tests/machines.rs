//! Conversion of Cluster API objects to subjects, without a cluster.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use bringup_azure::InstanceId;
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::outputs::conditions;
use bringup_observe::shape::Shape;
use bringup_observe::subject::{Launch, Place, Subject};
use serde_json::{Value, json};

const BASE: &str = "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute";

/// A Machine as an API server would return it.
fn machine(kind: &str, id: Option<&str>, conditions: &[Value]) -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "clusterName": "prod", "providerID": id, "infrastructureRef": { "kind": kind, "name": "a" } },
        "status": { "conditions": conditions },
    })
}

fn subject(machine: Value) -> Option<Subject> {
    MachineIndex::new(DEADLINE).machine_seen(serde_json::from_value(machine).unwrap())
}

fn ready() -> Value {
    json!({ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:02:00Z" })
}

fn theirs(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({ "type": format!("Theirs{number}"), "status": "True", "reason": "R", "message": "" }))
        .collect()
}

#[test]
fn test_10_ids_of_vms_and_of_instances_are_read_in_any_casing() {
    let vm = "azure:///SUBSCRIPTIONS/s/resourcegroups/rg/PROVIDERS/microsoft.compute/VirtualMachines/worker-1";
    let flexible = format!("{BASE}/virtualMachines/set_1a2b3c4d");
    for (kind, id, name) in [
        ("AzureMachine", vm, "worker-1"),
        ("AzureMachinePoolMachine", flexible.as_str(), "set_1a2b3c4d"),
    ] {
        let Place::Known(id) = subject(machine(kind, Some(id), &[])).unwrap().place else {
            panic!("{kind} is found")
        };
        let InstanceId::VirtualMachine(vm) = id.instance else { panic!("{name} is a VM") };
        assert_eq!(vm.name.to_string(), name);
    }
    for id in [
        format!("{BASE}/virtualMachineScaleSets/set/virtualMachines/7"),
        format!("{BASE}/VIRTUALMACHINESCALESETS/set/VIRTUALMACHINES/7").to_uppercase(),
    ] {
        let id = id.replace("AZURE:", "azure:");
        let found = subject(machine("AzureMachinePoolMachine", Some(&id), &[])).unwrap();
        let Place::Known(known) = found.place else { panic!("{id} is found") };
        let InstanceId::ScaleSetInstance(instance) = known.instance else {
            panic!("{id} is an instance")
        };
        assert_eq!(instance.instance.to_string(), "7");
    }
}

#[test]
fn test_07_our_own_conditions_need_no_more_room() {
    let ours = ["BootstrapSucceeded", "bringup.dev/ReplacementUseful"]
        .map(|kind| json!({ "type": kind, "status": "Unknown", "reason": "R", "message": "" }));
    let id = format!("{BASE}/virtualMachines/a");
    for (count, is_borne, has_room) in
        [(30, false, true), (31, false, false), (32, false, false), (30, true, true)]
    {
        let mut conditions = theirs(count);
        conditions.extend(ours.iter().filter(|_| is_borne).cloned());
        let found = subject(machine("AzureMachine", Some(&id), &conditions)).unwrap();
        assert_eq!(found.has_room, has_room, "{count} of others, borne: {is_borne}");
    }
}

#[test]
fn a_machine_without_an_id_is_looked_after_once_its_vm_is_said_to_be_there() {
    let early = subject(machine("AzureMachine", None, &[])).unwrap();
    assert_eq!((early.launch, early.place), (Launch::NotYet, Place::NotSaid));
    let made = subject(machine("AzureMachine", None, &[ready()])).unwrap();
    assert!(matches!(made.launch, Launch::Accepted(_)), "{:?}", made.launch);
    assert_eq!(made.place, Place::NotSaid);
    assert_eq!(made.trouble.as_deref(), Some("AzureMachine a was not seen"));
}

#[test]
fn a_kind_that_is_not_known_counts_only_where_its_vm_is_on_azure() {
    let id = format!("{BASE}/virtualMachines/a");
    let found = subject(machine("OtherMachine", Some(&id), &[])).unwrap();
    assert!(matches!(found.place, Place::Known(_)));
    assert_eq!(found.trouble.as_deref(), Some("objects of kind OtherMachine are not known"));
    assert!(found.mirror.is_none());
    for id in [None, Some("aws:///eu-west-1a/i-0123")] {
        assert!(subject(machine("OtherMachine", id, &[])).is_none(), "{id:?} is not ours");
    }
}

/// An index with objects in the shape of an older or a newer Cluster API.
fn machines(is_old: bool) -> MachineIndex {
    let machines = MachineIndex::new(DEADLINE);
    for kind in ["Machine", "AzureMachine"] {
        let mut resource = Shape::assumed(kind).resource;
        let version = if is_old { "v1beta1" } else { "v1beta2" };
        version.clone_into(&mut resource.version);
        machines.shapes.found(&Shape::assumed_of(resource));
    }
    machines
}

#[test]
fn what_was_written_in_either_shape_is_not_written_again() {
    let id = format!("{BASE}/virtualMachines/a");
    for is_old in [true, false] {
        let machines = machines(is_old);
        let seen = |ours: &[Value], behind: &[Value]| -> Subject {
            let mut machine = machine("AzureMachine", Some(&id), &[&[ready()], ours].concat());
            machine["metadata"]["generation"] = json!(3);
            let provided = json!({ "metadata": { "name": "a", "namespace": "n" }, "status": { "conditions": behind } });
            machines.infra_machine_seen("AzureMachine", serde_json::from_value(provided).unwrap());
            machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap()
        };
        let before = seen(&[], &[]);
        let wanted = conditions::desired(&before, None, None, false, before.created);
        assert_eq!(wanted.len(), 2);
        assert!(!conditions::are_borne(&before, &wanted));
        let behind = conditions::mirrored(&before, &wanted).unwrap();
        let ours: Vec<Value> = wanted
            .iter()
            .map(|one| serde_json::to_value(before.shape.shaped(one)).unwrap())
            .collect();
        assert_eq!(ours[0].get("observedGeneration").is_none(), is_old);

        let after = seen(&ours, &[serde_json::to_value(behind).unwrap()]);
        let wanted = conditions::desired(&after, None, None, false, after.created);
        assert!(conditions::are_borne(&after, &wanted), "old: {is_old}");
        assert_eq!(conditions::mirrored(&after, &wanted), None, "old: {is_old}");
    }
}

#[test]
fn a_list_without_a_limit_has_room_for_ours() {
    let id = format!("{BASE}/virtualMachines/a");
    for is_old in [true, false] {
        let full = machine("AzureMachine", Some(&id), &theirs(40));
        let found = machines(is_old).machine_seen(serde_json::from_value(full).unwrap()).unwrap();
        assert_eq!(found.has_room, is_old);
    }
}
