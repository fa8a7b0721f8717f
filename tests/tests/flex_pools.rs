//! Pools of the plugin of aks-flex on a real API server and a simulated Azure.

#[path = "flex/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bringup_azure::Scopes;
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_end_to_end::test_bed::shared_with_flex;
use bringup_end_to_end::{SUBNET, SUBSCRIPTION, arm};
use bringup_objects::flex::class::FlexNodeClassSpec;
use bringup_objects::flex::machine::{FlexMachineSpec, FlexMachineStatus, Phase, Place};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_provision::grpc::listen::{Address, GrpcListener};
use bringup_provision::grpc::plugin::agentpools::agent_pools_client::AgentPoolsClient;
use bringup_provision::grpc::plugin::agentpools::azure::flexvm::{AgentPool, AgentPoolSpec};
use bringup_provision::grpc::plugin::api::{
    CreateOrUpdateRequest, DeleteRequest, GetRequest, Metadata,
};
use bringup_provision::grpc::plugin::kubeadm::Config;
use bringup_provision::grpc::plugin::{
    AgentPoolsService, Pool, PoolError, Pools as _, Record, Stored,
};
use bringup_provision::pools::{Cluster, ID, KubePools, LABEL, TYPE};
use bringup_testbed::wait::{in_time, is_gone, until_object};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use prost::{Message as _, Name as _};
use prost_types::Any;
use tokio::net::UnixStream;
use tonic::service::Routes;
use tonic::transport::Endpoint;

use crate::common::{FlexBed, REGION};

const TOKEN: &str = "abcdef.0123456789abcdef";

fn authority() -> Result<Vec<u8>> {
    let made = rcgen::generate_simple_self_signed(vec!["cluster".to_owned()])?;
    Ok(made.cert.pem().into_bytes())
}

/// The scopes that pools may use: all that these tests need.
fn scopes() -> Result<Scopes> {
    Ok([SUBSCRIPTION.parse()?].into_iter().collect())
}

fn cluster() -> Result<Cluster> {
    Ok(Cluster { server: "https://cluster.example:6443".to_owned(), authority: authority()? })
}

fn pool(id: &str, cluster: &Cluster) -> Pool {
    Pool {
        id: id.to_owned(),
        class: FlexNodeClassSpec {
            subscription_id: SUBSCRIPTION.to_owned(),
            location: "eastus2".to_owned(),
            resource_group: "rg-flex".to_owned(),
            subnet_id: SUBNET.to_owned(),
            max_pods_per_node: Some(50),
            ..FlexNodeClassSpec::default()
        },
        size: "Standard_D8s_v5".to_owned(),
        labels: [("team".to_owned(), "red".to_owned())].into(),
        taints: vec!["gpu=h200:NoSchedule".to_owned()],
        server: cluster.server.clone(),
        authority: cluster.authority.clone(),
    }
}

fn azure(text: &str) -> Result<Simulator> {
    let scenario = scenario::parse("pools", &format!("{REGION}\n{text}"))?;
    Ok(Simulator::new(scenario, Pace::Times(60.0), Timestamp::now()))
}

/// Pools for which no machine controller runs, and which do not wait for one.
async fn pools_without_controller() -> Result<(Client, KubePools, Cluster)> {
    let client = shared_with_flex().await?.client();
    let cluster = cluster()?;
    let arm = arm::client(&azure("")?, "flex");
    let pools =
        KubePools::new(client.clone(), arm, cluster.clone(), scopes()?).waiting(Duration::ZERO);
    Ok((client, pools, cluster))
}

async fn stored_pool(pools: &KubePools, id: &str) -> Result<Stored> {
    match pools.get(id).await? {
        Some(Record::Pool(stored)) => Ok(*stored),
        other => bail!("{id} is {other:?}"),
    }
}

/// The refusal of a pool. On a busy computer the request to Azure is late, and the pool is put again.
async fn refusal_of(pools: &KubePools, pool: &Pool) -> Result<PoolError> {
    let refused = async {
        loop {
            match pools.put(pool.clone()).await {
                Err(error) => break error,
                Ok(stored) => assert_eq!(stored.vm_resource_id, None),
            }
        }
    };
    Ok(in_time("a refusal", refused).await?)
}

#[tokio::test]
async fn a_pool_becomes_a_vm_and_its_deletion_leaves_nothing() -> Result<()> {
    let bed =
        FlexBed::new("quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]")
            .await?;
    let cluster = cluster()?;
    let arm = arm::client(&bed.azure, "flex");
    let pools = KubePools::new(bed.client.clone(), arm, cluster.clone(), scopes()?);
    let (machines, classes) = (bed.machines(), bed.classes());

    let wanted = pool("Team A/one", &cluster);
    let made = pools.put(wanted.clone()).await?;
    assert_eq!(made.pool, wanted);
    let all = machines.list(&ListParams::default().labels(LABEL)).await?;
    let machine = all.iter().find(|one| one.annotations().get(ID) == Some(&wanted.id));
    let name = machine.context("a machine of the pool")?.name_any();
    let runs = |machine: Option<&AzureFlexMachine>| {
        machine.is_some_and(|one| one.status.as_ref().is_some_and(|it| it.phase == Phase::Running))
    };
    until_object(machines.clone(), &name, "a VM that runs", runs).await?;
    let stored = stored_pool(&pools, &wanted.id).await?;
    let status = machines.get(&name).await?.status;
    let vm = status.and_then(|status| status.place).context("it has a place")?.vm;
    assert_eq!(
        stored.vm_resource_id,
        Some(format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{vm}"
        ))
    );
    assert_eq!(stored.created_at, made.created_at);

    // A second put of the same pool changes nothing; a put of a different one is refused.
    assert_eq!(pools.put(wanted.clone()).await?, stored);
    let larger = Pool { size: "Standard_NC24ads_A100_v4".to_owned(), ..wanted.clone() };
    let refused = pools.put(larger).await.unwrap_err();
    assert!(matches!(refused, PoolError::Fixed(_)), "{refused}");
    assert!(refused.to_string().contains("spec.vm_size"), "{refused}");

    pools.restart(&wanted.id).await?;
    let powered_on = |azure: &mut Azure| {
        let of_vm = |line: &&str| line.contains(&name) && line.contains("powered on");
        azure.journal().text().lines().filter(of_vm).count()
    };
    bed.azure_when("a restart", powered_on, |count| *count >= 2).await?;

    pools.delete(&wanted.id).await?;
    until_object(machines.clone(), &name, "a machine that is gone", is_gone).await?;
    until_object(classes.clone(), &name, "a class that is gone", is_gone).await?;
    assert_eq!(pools.get(&wanted.id).await?, None);
    pools.delete(&wanted.id).await?;

    // A refusal by Azure is returned with its code, and the pool is not stored.
    let scarce = Pool { size: "Standard_NC24ads_A100_v4".to_owned(), ..pool("scarce", &cluster) };
    let PoolError::Azure(failure) = refusal_of(&pools, &scarce).await? else {
        bail!("it is scarce")
    };
    assert_eq!(failure.class.as_str(), "capacity");
    assert_eq!(failure.arm_code.as_deref(), Some("OperationNotAllowed"));
    until_object(machines.clone(), "scarce", "a machine that is gone", is_gone).await?;
    until_object(classes.clone(), "scarce", "a class that is gone", is_gone).await?;
    assert_eq!(pools.get("scarce").await?, None);

    // The same holds for a refusal that concerns the class.
    let mut far = pool("far", &cluster);
    far.class.location = "westus".to_owned();
    let PoolError::NotReady(why) = refusal_of(&pools, &far).await? else { bail!("it is far") };
    assert!(why.contains("it is in eastus2, and location is westus"), "{why}");
    until_object(machines, "far", "a machine that is gone", is_gone).await?;
    until_object(classes, "far", "a class that is gone", is_gone).await?;
    Ok(())
}

#[tokio::test]
async fn case_25_a_token_is_neither_stored_nor_in_an_answer() -> Result<()> {
    let (client, pools, cluster) = pools_without_controller().await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("plugin.sock");
    let listener = GrpcListener::bind(Address::Unix(path.clone()), None).await?;
    let routes = Routes::new(AgentPoolsService::server(Arc::new(pools)));
    let serving = tokio::spawn(listener.serve(routes, std::future::pending()));
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://bringup").connect_with_connector(connector).await?;
    let mut plugin = AgentPoolsClient::new(channel);

    let text = |text: &str| Some(text.to_owned());
    let wanted = AgentPool {
        metadata: Some(Metadata { id: text("secretive"), ..Metadata::default() }),
        spec: Some(AgentPoolSpec {
            subscription_id: text(SUBSCRIPTION),
            resource_group: text("rg-flex"),
            location: text("eastus2"),
            subnet_id: text(SUBNET),
            vm_size: text("Standard_D8s_v5"),
            kubeadm: Some(Config {
                server: text(&cluster.server),
                certificate_authority_data: Some(cluster.authority.clone()),
                token: text(TOKEN),
                ..Config::default()
            }),
            ..AgentPoolSpec::default()
        }),
        status: None,
    };
    let item = Any { type_url: AgentPool::type_url(), value: wanted.encode_to_vec() };
    let request = CreateOrUpdateRequest { item: Some(item) };
    let made = plugin.create_or_update(request).await?.into_inner().item.unwrap_or_default();
    let shown = plugin.get(GetRequest { id: text("secretive") }).await?.into_inner().item;
    let shown = shown.unwrap_or_default();
    let holds = |bytes: &[u8]| bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
    assert!(holds(&wanted.encode_to_vec()), "the request has it");
    assert!(!holds(&made.value) && !holds(&shown.value));
    let answered = AgentPool::decode(shown.value.as_slice())?;
    assert_eq!(answered.metadata.and_then(|metadata| metadata.id), text("secretive"));
    assert!(answered.status.and_then(|status| status.created_at).is_some());

    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let at_rest = [
        serde_json::to_string(&classes.get("secretive").await?)?,
        serde_json::to_string(&machines.get("secretive").await?)?,
    ];
    for object in at_rest {
        assert!(object.contains("secretive") && !object.contains(TOKEN), "{object}");
    }
    plugin.delete(DeleteRequest { id: text("secretive") }).await?;
    serving.abort();
    Ok(())
}

#[tokio::test]
async fn another_cluster_cannot_be_joined() -> Result<()> {
    let (_, pools, cluster) = pools_without_controller().await?;
    let elsewhere = Pool { authority: authority()?, ..pool("elsewhere", &cluster) };
    let refused = pools.put(elsewhere).await.unwrap_err();
    let PoolError::Field { field, .. } = &refused else { bail!("{refused}") };
    assert_eq!(field, "spec.kubeadm.certificate_authority_data");
    assert_eq!(pools.get("elsewhere").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_vm_that_took_the_place_of_a_pools_vm_is_not_restarted() -> Result<()> {
    let (client, _, cluster) = pools_without_controller().await?;
    let body = r#"{"name": "taken", "properties": {"vmId": "of-another-team"}}"#;
    let fault = format!(
        "faults: [{{on: {{method: GET, pathContains: /virtualmachines/taken}}, fault: {{answer: {{status: 200, body: '{body}'}}}}}}]"
    );
    let azure = azure(&fault)?;
    let arm = arm::client(&azure, "flex");
    let pools =
        KubePools::new(client.clone(), arm, cluster.clone(), scopes()?).waiting(Duration::ZERO);
    let wanted = pool("taken", &cluster);
    pools.put(wanted.clone()).await?;
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let labelled = machines.list(&ListParams::default().labels(&format!("{LABEL}=taken"))).await?;
    let machine = labelled.items.first().context("a machine of the pool")?.name_any();
    let place = Place {
        subscription_id: SUBSCRIPTION.to_owned(),
        resource_group: "rg-flex".to_owned(),
        vm: "taken".to_owned(),
        ..Place::default()
    };
    let status = FlexMachineStatus {
        phase: Phase::Running,
        place: Some(place),
        vm_id: Some("made-for-the-pool".to_owned()),
        ..FlexMachineStatus::default()
    };
    let status = Patch::Merge(serde_json::json!({ "status": status }));
    machines.patch_status(&machine, &PatchParams::default(), &status).await?;
    let refused = pools.restart(&wanted.id).await.unwrap_err();
    assert!(
        matches!(&refused, PoolError::Fixed(why) if why.contains("of-another-team")),
        "{refused}"
    );
    let journal = azure.with(|azure| azure.journal().text().to_owned());
    assert!(!journal.contains("/restart"), "{journal}");
    Ok(())
}

#[tokio::test]
async fn case_23_two_replicas_that_serve_the_same_pools_make_one_machine() -> Result<()> {
    let (client, one, cluster) = pools_without_controller().await?;
    let arm = arm::client(&azure("")?, "flex");
    let two =
        KubePools::new(client.clone(), arm, cluster.clone(), scopes()?).waiting(Duration::ZERO);
    let wanted = pool("shared", &cluster);
    let calls = (0..8).map(|turn| {
        let pools = if turn % 2 == 0 { &one } else { &two };
        pools.put(wanted.clone())
    });
    let answers = futures::future::join_all(calls).await;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert!(answers.iter().all(|stored| stored.pool == wanted));
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let labelled = machines.list(&ListParams::default().labels(&format!("{LABEL}=shared"))).await?;
    let [machine] = labelled.items.as_slice() else { bail!("{} machines", labelled.items.len()) };
    assert_eq!(machine.spec.node_class, "shared");
    assert_eq!(machine.spec.labels, wanted.labels);
    assert_eq!(machine.spec.taints, wanted.taints);
    Ok(())
}

#[tokio::test]
async fn case_19_to_21_foreign_and_broken_objects_are_kept_and_spoil_no_list() -> Result<()> {
    let (client, pools, cluster) = pools_without_controller().await?;
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let class = |name: &str| AzureFlexNodeClass::new(name, pool(name, &cluster).class);
    let make = async |mut class: AzureFlexNodeClass, notes: &[(&str, &str)]| {
        let name = class.name_any();
        class.labels_mut().insert(LABEL.to_owned(), name);
        for (key, value) in notes {
            class.annotations_mut().insert((*key).to_owned(), (*value).to_owned());
        }
        classes.create(&PostParams::default(), &class).await
    };
    pools.put(pool("sound", &cluster)).await?;
    make(class("typed"), &[(ID, "typed"), (TYPE, "agentpools.nebius.instance.AgentPool")]).await?;
    make(class("nameless"), &[]).await?;
    // A class that has nothing to do with pools.
    classes.create(&PostParams::default(), &class("plain")).await?;
    // A machine whose class no longer exists.
    let spec = FlexMachineSpec {
        node_class: "lone".to_owned(),
        vm_size: "Standard_D4s_v5".to_owned(),
        ..FlexMachineSpec::default()
    };
    let mut lone = AzureFlexMachine::new("lone", spec);
    lone.labels_mut().insert(LABEL.to_owned(), "lone".to_owned());
    lone.annotations_mut().insert(ID.to_owned(), "lone".to_owned());
    machines.create(&PostParams::default(), &lone).await?;

    let all = pools.list().await?;
    let of = |id: &str| all.iter().find(|(known, _)| known == id).map(|(_, record)| record);
    assert!(matches!(of("sound"), Some(Record::Pool(stored)) if stored.pool.id == "sound"));
    assert_eq!(of("typed"), Some(&Record::Other));
    assert!(matches!(of("nameless"), Some(Record::Broken(_))), "{all:?}");
    assert!(matches!(of("lone"), Some(Record::Broken(_))), "{all:?}");
    assert_eq!(of("plain"), None);

    // A name alone does not make an object a pool, and no other object is overwritten or deleted.
    for id in ["typed", "nameless", "plain"] {
        let refused = pools.put(pool(id, &cluster)).await.unwrap_err();
        assert!(matches!(refused, PoolError::Fixed(_)), "{id}: {refused}");
    }
    assert_eq!(pools.get("typed").await?, Some(Record::Other));
    for id in ["nameless", "plain"] {
        assert_eq!(pools.get(id).await?, None, "{id}");
        pools.delete(id).await?;
        assert!(classes.get(id).await?.metadata.deletion_timestamp.is_none(), "{id}");
    }
    Ok(())
}
