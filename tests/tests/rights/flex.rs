//! Machines, with exactly the rights that the chart grants for them, and with each of them missing.

use bringup_end_to_end::flex_controller::join_settings;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::Controller;
use bringup_end_to_end::request_counter::RequestCounter;
use bringup_end_to_end::test_bed::controller;
use bringup_end_to_end::{NAMESPACE, SUBNET, SUBSCRIPTION, TestBed, arm};
use bringup_objects::NodeClaim;
use bringup_objects::flex::class::FlexNodeClassSpec;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_objects::flex::{LEDGER, TOKENS_NAMESPACE};
use bringup_observe::Settings;
use bringup_provision::Provisioning;
use bringup_provision::grpc::listen::{Address, AllowedClients};
use bringup_provision::grpc::plugin::{Pool, Pools as _};
use bringup_provision::pools::{Cluster, KubePools};
use bringup_runtime::health::Health;
use bringup_runtime::rights::{FLEX, Needed, needed};
use bringup_testbed::wait::{in_time, is_gone, polled, until, until_object};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::{PostParams, grant};

const SIZE: &str = "Standard_D8s_v5";

async fn bed() -> Result<TestBed> {
    TestBed::builder().flex().without_nodes().start().await
}

fn azure(pace: Pace) -> Result<Simulator> {
    let text = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]";
    let scenario = scenario::parse("flex", text)?;
    Ok(Simulator::new(scenario, pace, jiff::Timestamp::now()))
}

/// Settings that no test depends on.
async fn provisioning(client: &Client) -> Result<Provisioning> {
    let version = client.apiserver_version().await?.git_version;
    let version = version.trim_start_matches('v');
    Ok(Provisioning {
        cluster: "cluster-1".to_owned(),
        join: serde_json::from_value(join_settings(version))?,
        address: Address::Unix("/not/used".into()),
        tls: None,
        clients: AllowedClients::default(),
        plugin: None,
        // A user of the test, whom no policy limits.
        without_policy: true,
    })
}

/// A controller that leads until it is stopped.
struct Leading {
    controller: Arc<Controller>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Leading {
    async fn new(client: Client, azure: &Simulator, identity: &str) -> Result<Self> {
        let provisioning = provisioning(&client).await?;
        Ok(Self::with(provisioning, client, azure, identity))
    }

    fn with(provisioning: Provisioning, client: Client, azure: &Simulator, identity: &str) -> Self {
        let settings = Settings::new(NAMESPACE, identity);
        let controller = controller(azure, client, settings);
        let controller = Arc::new(controller.with_provisioning(provisioning));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn({
            let controller = controller.clone();
            async move { controller.lead(async { drop(stopped.await) }).await }
        });
        Self { controller, stop, task }
    }

    /// Stops the controller, which releases its lease.
    async fn stop(self) -> Result<()> {
        assert!(!self.task.is_finished(), "it has ended by itself");
        drop(self.stop);
        in_time("its end", self.task).await?.context("it has crashed")
    }
}

fn runs(machine: Option<&AzureFlexMachine>) -> bool {
    let status = machine.and_then(|machine| machine.status.as_ref());
    status.is_some_and(|status| status.phase == Phase::Running)
}

/// Creates a class, a claim of it and the machine of the claim, all with one name.
async fn claimed(client: &Client, name: &str) -> Result<()> {
    let parameters = PostParams::default();
    let class = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": name },
        "spec": { "subscriptionID": SUBSCRIPTION, "location": "eastus2", "resourceGroup": "rg-flex",
            "subnetID": SUBNET, "bootTimeout": "60m" },
    });
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    classes.create(&parameters, &serde_json::from_value(class)?).await?;
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": name },
        "spec": { "requirements": [], "nodeClassRef": {
            "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": name } },
    });
    let resource = ApiResource::erase::<NodeClaim>(&());
    let claims: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let claim = claims.create(&parameters, &serde_json::from_value(claim)?).await?;
    let machine = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": name },
        "spec": { "nodeClass": name, "vmSize": SIZE,
            "claimRef": { "name": name, "uid": claim.uid().unwrap_or_default() } },
    });
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    machines.create(&parameters, &serde_json::from_value(machine)?).await?;
    Ok(())
}

/// The address of a NIC.
fn address(azure: &Simulator, name: &str) -> Result<String> {
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{name}?api-version=2024-05-01"
    );
    let nic = arm::Arm::new(azure.clone()).get(&path)?.body;
    let address = nic.pointer("/properties/ipConfigurations/0/properties/privateIPAddress");
    Ok(address.and_then(Value::as_str).context("the NIC has an address")?.to_owned())
}

#[tokio::test]
async fn with_exactly_the_rights_of_the_chart_machines_come_and_go() -> Result<()> {
    let bed = bed().await?;
    // A minute of Azure's clock takes a second.
    let (client, azure) = (bed.client.clone(), azure(Pace::Times(60.0))?);
    let user = grant(bed.control_plane(), NAMESPACE, "allrights", &needed(true, false)).await?;
    let counter = RequestCounter::default();
    let limited = counter.client(user.config())?;
    let leading = Leading::new(limited.clone(), &azure, "allrights").await?;
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());

    // A machine for a pool, as aks-flex requests it.
    let authority = rcgen::generate_simple_self_signed(vec!["cluster".to_owned()])?.cert.pem();
    let server = "https://api.example".to_owned();
    let cluster = Cluster { server, authority: authority.into_bytes() };
    let scopes = [SUBSCRIPTION.parse()?].into_iter().collect();
    let pools = KubePools::new(limited, arm::client(&azure, "flex"), cluster.clone(), scopes);
    let pool = Pool {
        id: "pool".to_owned(),
        class: FlexNodeClassSpec {
            subscription_id: SUBSCRIPTION.to_owned(),
            location: "eastus2".to_owned(),
            resource_group: "rg-flex".to_owned(),
            subnet_id: SUBNET.to_owned(),
            ..FlexNodeClassSpec::default()
        },
        size: SIZE.to_owned(),
        labels: [].into(),
        taints: Vec::new(),
        server: cluster.server,
        authority: cluster.authority,
    };
    pools.put(pool).await?;
    until_object(machines.clone(), "pool", "a VM that runs", runs).await?;
    pools.delete("pool").await?;
    until_object(machines.clone(), "pool", "the end of the machine", is_gone).await?;

    // A machine for a claim, as Karpenter requests it, and a Node without a provider ID.
    claimed(&client, "one").await?;
    let up = until_object(machines.clone(), "one", "a VM that runs", runs).await?;
    let up = up.and_then(|machine| machine.status).unwrap_or_default();
    let made = up.place.unwrap_or_default();
    let tokens: Api<Secret> = Api::namespaced(client.clone(), TOKENS_NAMESPACE);
    let is_token =
        |secret: &Secret| secret.type_.as_deref() == Some("bootstrap.kubernetes.io/token");
    let all = async || -> Result<usize> {
        let all = tokens.list(&ListParams::default()).await?;
        Ok(all.items.iter().filter(|secret| is_token(secret)).count())
    };
    // The token of the pool's machine expires by itself: its Node never joined.
    assert_eq!(all().await?, 2);
    let nodes: Api<Node> = Api::all(client.clone());
    let labels = json!({ "karpenter.azure.com/node-claim": "one" });
    let node = json!({ "metadata": { "name": "one", "labels": labels } });
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let addresses = json!([{ "type": "InternalIP", "address": address(&azure, &made.nic)? }]);
    let status = Patch::Merge(json!({ "status": { "addresses": addresses } }));
    nodes.patch_status("one", &PatchParams::default(), &status).await?;
    let has_id = |node: Option<&Node>| {
        node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.provider_id.is_some())
    };
    until_object(nodes, "one", "a provider id", has_id).await?;
    until("the end of the token", polled(all), |count| *count <= 1).await?;

    // A user deletes the VM of the machine: the claim shows why it is deleted, and nothing is left.
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let named = json!({ "status": { "providerID": up.provider_id, "imageID": "ubuntu" } });
    claims.patch_status("one", &PatchParams::default(), &Patch::Merge(named)).await?;
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{}?api-version=2024-11-01",
        made.vm
    );
    arm::Arm::new(azure.clone()).delete(&path)?;
    until_object(claims, "one", "the end of the claim", is_gone).await?;
    until_object(machines, "one", "the end of the machine", is_gone).await?;
    assert_eq!(azure.with(|azure| azure.resources()).len(), 0);
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let events = events.list(&ListParams::default()).await?;
    let is_told = |event: &Event| event.reason.as_deref() == Some("AsyncProvisioningError");
    assert!(events.iter().any(is_told), "{events:?}");
    let ledgers: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    assert!(ledgers.get_opt(LEDGER).await?.is_some());
    let classes: Api<AzureFlexNodeClass> = Api::all(client);
    classes.delete("one", &DeleteParams::default()).await?;
    until_object(classes, "one", "the end of the class", is_gone).await?;

    let controller = leading.controller.clone();
    controller.check_rights().await;
    assert_eq!(controller.health().not_ready(), Vec::<String>::new());
    assert_eq!(controller.health().degraded(), Vec::<String>::new());
    let metrics = controller.metrics().text();
    for line in [
        "bringup_flex_machines{phase=\"Running\"} 0",
        "bringup_flex_classes{ready=\"False\"} 0",
        "bringup_flex_failures_total{cause=\"PlatformTransient\"} 1",
        "bringup_flex_claims_ended_total{cause=\"PlatformTransient\"} 1",
        "bringup_flex_leaks 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    leading.stop().await?;
    let counts = counter.counts();
    assert!(counts.denied.is_empty(), "{:?}", counts.denied);
    Ok(())
}

#[tokio::test]
async fn without_an_admission_policy_no_machine_is_made() -> Result<()> {
    let bed = bed().await?;
    let (client, azure) = (bed.client.clone(), azure(Pace::Times(60.0))?);
    let user = grant(bed.control_plane(), NAMESPACE, "unlimited", &needed(true, false)).await?;
    claimed(&client, "one").await?;
    let strict = Provisioning { without_policy: false, ..provisioning(&client).await? };
    let leading = Leading::with(strict, user.client(), &azure, "strict");
    let says_so = |health: &Health| {
        health
            .waiting()
            .iter()
            .any(|line| line.contains("flex does not start: no admission policy"))
    };
    let health = leading.controller.health().clone();
    in_time("what flex waits for", health.until(says_so)).await?;
    leading.stop().await?;
    assert_eq!(azure.with(|azure| azure.resources()).len(), 0);

    // With --flex-without-policy, machines are made all the same.
    let told = Leading::new(user.client(), &azure, "told").await?;
    until_object(Api::all(client), "one", "a VM that runs", runs).await?;
    told.stop().await
}

/// Whether no machine can start without this right, so that a request is soon denied.
fn is_soon_missed(needed: &Needed) -> bool {
    match (needed.resource, needed.verb) {
        ("secrets", "create") => true,
        (resource, "list") => !resource.is_empty(),
        (resource, "update") => resource.starts_with("azureflex"),
        _ => false,
    }
}

#[tokio::test]
async fn each_right_that_is_missing_is_named_and_not_asked_for_again_and_again() -> Result<()> {
    let bed = bed().await?;
    let client = bed.client.clone();
    for (number, lacking) in FLEX.iter().enumerate() {
        let name = format!("lacks{number}");
        let words = lacking.words();
        let granted = needed(true, false).into_iter().filter(|one| one.words() != words);
        let user =
            grant(bed.control_plane(), NAMESPACE, &name, &granted.collect::<Vec<_>>()).await?;
        let (counter, azure) = (RequestCounter::default(), azure(Pace::Manual)?);
        claimed(&client, &name).await?;
        let leading = Leading::new(counter.client(user.config())?, &azure, &name).await?;
        let controller = leading.controller.clone();

        controller.check_rights().await;
        let said = controller.health().not_ready();
        assert_eq!(
            said.iter().any(|line| line.contains(&words)),
            lacking.right.is_vital(),
            "{words}: {said:?}"
        );
        let metrics = controller.metrics().text();
        assert!(metrics.contains("bringup_degraded{what=\"rights\"} 1"), "{words}");

        let missed = async {
            while is_soon_missed(lacking) && counter.counts().denied.is_empty() {
                controller.check_rights().await;
                azure.advance(Duration::from_secs(1));
            }
        };
        in_time(format!("a denial of {words}"), missed).await?;
        // Now the clock stands still, so that no object is due; only watches are retried, at growing
        // intervals. A few checks of the rights, one after the other, measure the time.
        let before = counter.counts().denied.values().sum::<u64>();
        for _ in 0..3 {
            controller.check_rights().await;
        }
        let denied = counter.counts().denied;
        let again = denied.values().sum::<u64>() - before;
        assert!(again < 30, "{words}: {denied:?}");

        leading.stop().await?;
        clear(&client, &name).await?;
    }
    Ok(())
}

/// Deletes what `claimed` has created, even if other objects still refer to it.
async fn clear(client: &Client, name: &str) -> Result<()> {
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let (free, merge) =
        (Patch::Merge(json!({ "metadata": { "finalizers": null } })), PatchParams::default());
    if machines.get_opt(name).await?.is_some() {
        machines.patch(name, &merge, &free).await?;
        machines.delete(name, &DeleteParams::default()).await?;
    }
    classes.patch(name, &merge, &free).await?;
    classes.delete(name, &DeleteParams::default()).await?;
    if claims.get_opt(name).await?.is_some() {
        claims.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}
