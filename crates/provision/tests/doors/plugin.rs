//! The plugin of aks-flex.

use std::sync::Arc;

use anyhow::Result;
use bringup_provision::grpc::listen::GrpcListener;
use bringup_provision::grpc::plugin::agentpools::InstanceRestartRequest;
use bringup_provision::grpc::plugin::agentpools::agent_pools_client::AgentPoolsClient;
use bringup_provision::grpc::plugin::agentpools::azure::flexvm::{
    AgentPool, AgentPoolSpec, ImageReference, Instance,
};
use bringup_provision::grpc::plugin::agentpools::instances_client::InstancesClient;
use bringup_provision::grpc::plugin::api::{
    CreateOrUpdateRequest, DeleteRequest, GetRequest, ListRequest, Metadata,
};
use bringup_provision::grpc::plugin::kubeadm::Config;
use bringup_provision::grpc::plugin::{
    AgentPoolsService, InstancesService, Record, same_authority,
};
use bringup_provision::grpc::refusal::trouble_in;
use bringup_provision::grpc::v1::trouble::Class;
use prost::Message as _;
use prost_types::Any;
use tempfile::TempDir;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::certificates::Authority;
use crate::clients::{Open, on_socket, unix};
use crate::items::{INSTANCE, POOL, TOKEN, changed, packed, pool, unpacked};
use crate::memory::Memory;

/// Both services over pools in memory, and their clients.
struct World {
    memory: Arc<Memory>,
    pools: AgentPoolsClient<Channel>,
    instances: InstancesClient<Channel>,
    _open: Open,
    _folder: TempDir,
}

impl World {
    async fn new() -> Result<Self> {
        let folder = TempDir::new()?;
        let path = folder.path().join("plugin.sock");
        let memory = Arc::new(Memory::default());
        let routes = Routes::new(AgentPoolsService::server(memory.clone()))
            .add_service(InstancesService::server(memory.clone()));
        let open = Open::new(GrpcListener::bind(unix(&path), None).await?, routes);
        let channel = on_socket(&path).await?;
        Ok(Self {
            memory,
            pools: AgentPoolsClient::new(channel.clone()),
            instances: InstancesClient::new(channel),
            _open: open,
            _folder: folder,
        })
    }

    async fn put(&self, item: Option<Any>) -> Result<Option<Any>, Status> {
        let answer = self.pools.clone().create_or_update(CreateOrUpdateRequest { item }).await?;
        Ok(answer.into_inner().item)
    }

    async fn get(&self, id: &str) -> Result<Option<Any>, Status> {
        let request = GetRequest { id: Some(id.to_owned()) };
        Ok(self.pools.clone().get(request).await?.into_inner().item)
    }

    async fn list(&self) -> Result<Vec<Any>, Status> {
        Ok(self.pools.clone().list(ListRequest::default()).await?.into_inner().items)
    }

    async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteRequest { id: Some(id.to_owned()) };
        self.pools.clone().delete(request).await.map(drop)
    }
}

fn id_of(item: &Any) -> String {
    unpacked(Some(item)).metadata.and_then(|metadata| metadata.id).unwrap_or_default()
}

#[tokio::test]
async fn a_pool_is_kept_shown_and_removed() -> Result<()> {
    let world = World::new().await?;
    let made = unpacked(world.put(packed(&pool("one"))).await?.as_ref());
    let shown = unpacked(world.get("one").await?.as_ref());
    assert_eq!(made, shown);
    assert_eq!(world.list().await?.iter().map(id_of).collect::<Vec<_>>(), ["one"]);
    // All fields that the client sent, except the token.
    let mut expected = pool("one").spec.unwrap_or_default();
    expected.kubeadm.get_or_insert_default().token = None;
    assert_eq!(shown.spec, Some(expected));
    let status = shown.status.unwrap_or_default();
    assert_eq!(status.vm_resource_id.as_deref(), Some("/vms/one"));
    assert_eq!(status.created_at.map(|time| time.seconds), Some(1_700_000_000));
    world.delete("one").await?;
    assert_eq!(world.get("one").await.unwrap_err().code(), Code::NotFound);
    world.delete("one").await?;
    Ok(())
}

#[tokio::test]
async fn a_pool_whose_vm_is_not_accepted_yet_says_since_when_it_is_kept() -> Result<()> {
    let world = World::new().await?;
    world.put(packed(&pool("new"))).await?;
    let status = unpacked(world.list().await?.first()).status.unwrap_or_default();
    assert_eq!(status.vm_resource_id, None);
    assert!(status.created_at.is_some());
    Ok(())
}

#[tokio::test]
async fn case_24_an_item_that_is_missing_empty_or_of_another_type_is_refused() -> Result<()> {
    let world = World::new().await?;
    let any = |type_url: &str, value: &[u8]| {
        Some(Any { type_url: type_url.to_owned(), value: value.to_vec() })
    };
    let other = "type.googleapis.com/agentpools.nebius.instance.AgentPool";
    for (item, why) in [
        (None, "item"),
        (any("", b""), "item.type_url"),
        (any(other, &pool("one").encode_to_vec()), "agentpools.nebius"),
        (any(INSTANCE, b""), "item.type_url"),
        (any(POOL, b"\xff\xff"), "item.value"),
        (any(POOL, b""), "metadata.id"),
    ] {
        let refused = world.put(item).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{why}");
        assert!(refused.message().contains(why), "{why}: {}", refused.message());
    }
    assert!(world.memory.ids().is_empty());
    Ok(())
}

#[tokio::test]
async fn case_25_a_token_is_in_no_answer() -> Result<()> {
    let world = World::new().await?;
    let holds = |bytes: &[u8]| bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
    assert!(holds(&pool("one").encode_to_vec()), "the request has it");
    let made = world.put(packed(&pool("one"))).await?.unwrap_or_default();
    let shown = world.get("one").await?.unwrap_or_default();
    let mut answers = world.list().await?;
    answers.extend([made, shown]);
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert!(!holds(&answer.value));
    }
    // A refusal does not contain the token either.
    let wrong = changed(|spec, _| spec.vm_size = Some("huge".to_owned()));
    let refused = world.put(packed(&wrong)).await.unwrap_err();
    assert!(!refused.message().contains(TOKEN) && !holds(refused.details()));
    Ok(())
}

#[tokio::test]
async fn case_27_and_28_a_public_address_and_missing_kubeadm_data_are_refused() -> Result<()> {
    type Change = fn(&mut AgentPoolSpec, &mut Config);
    let rows: [(&str, Change); 9] = [
        ("spec.allocate_public_ip", |spec, _| spec.allocate_public_ip = Some(true)),
        ("spec.kubeadm.server", |_, kubeadm| kubeadm.server = None),
        ("spec.kubeadm.server", |_, kubeadm| kubeadm.server = Some(String::new())),
        ("spec.kubeadm.certificate_authority_data", |_, kubeadm| {
            kubeadm.certificate_authority_data = None;
        }),
        ("spec.kubeadm.certificate_authority_data", |_, kubeadm| {
            kubeadm.certificate_authority_data = Some(Vec::new());
        }),
        ("spec.kubeadm.token", |_, kubeadm| kubeadm.token = None),
        ("spec.kubeadm.token", |_, kubeadm| kubeadm.token = Some(String::new())),
        ("spec.kubeadm.node_ip", |_, kubeadm| kubeadm.node_ip = Some("10.0.0.9".to_owned())),
        ("spec.kubeadm.register_with_taints", |_, kubeadm| {
            kubeadm.register_with_taints[0].effect = Some("Sometimes".to_owned());
        }),
    ];
    let world = World::new().await?;
    for (field, change) in rows {
        let refused = world.put(packed(&changed(change))).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}");
        assert!(refused.message().starts_with(&format!("{field}: ")), "{}", refused.message());
    }
    let private = changed(|spec, _| spec.allocate_public_ip = Some(false));
    world.put(packed(&private)).await?;
    Ok(())
}

#[tokio::test]
async fn each_field_that_is_wrong_is_named() -> Result<()> {
    type Change = fn(&mut AgentPoolSpec);
    let rows: [(&str, Change); 12] = [
        ("spec.subscription_id", |spec| spec.subscription_id = None),
        ("spec.resource_group", |spec| spec.resource_group = None),
        ("spec.location", |spec| spec.location = Some("east-us".to_owned())),
        ("spec.subnet_id", |spec| spec.subnet_id = Some("/subscriptions/s".to_owned())),
        ("spec.vm_size", |spec| spec.vm_size = None),
        ("spec.vm_size", |spec| spec.vm_size = Some("Standard_Unknown".to_owned())),
        ("spec.image_reference", |spec| {
            spec.image_reference = Some(ImageReference::default());
        }),
        ("spec.image_id", |spec| {
            let part = Some("p".to_owned());
            let [publisher, offer, sku, version] = [(); 4].map(|()| part.clone());
            spec.image_reference = Some(ImageReference { publisher, offer, sku, version });
            spec.image_id = Some("/communityGalleries/g".to_owned());
        }),
        ("spec.security_type", |spec| spec.security_type = Some("TrustedLaunch".to_owned())),
        ("spec.os_disk_size_gb", |spec| spec.os_disk_size_gb = Some(1)),
        ("spec.ssh_public_keys", |spec| spec.ssh_public_keys = vec!["mine".to_owned()]),
        ("spec.tags", |spec| {
            spec.tags.insert("bringup-cluster".to_owned(), "other".to_owned());
        }),
    ];
    let world = World::new().await?;
    for (field, change) in rows {
        let wrong = changed(|spec, _| change(spec));
        let refused = world.put(packed(&wrong)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}");
        assert!(refused.message().starts_with(&format!("{field}: ")), "{}", refused.message());
    }
    // One refusal names all wrong fields.
    let empty = AgentPool {
        metadata: Some(Metadata { id: Some("empty".to_owned()), ..Metadata::default() }),
        ..AgentPool::default()
    };
    let refused = world.put(packed(&empty)).await.unwrap_err();
    let message = trouble_in(&refused).unwrap_or_default().message;
    for field in ["subscription_id", "resource_group", "location", "subnet_id", "vm_size"] {
        assert!(message.contains(&format!("spec.{field}: ")), "{message}");
    }
    for field in ["server", "certificate_authority_data", "token"] {
        assert!(message.contains(&format!("spec.kubeadm.{field}: ")), "{message}");
    }
    assert!(world.memory.ids().is_empty());
    Ok(())
}

#[tokio::test]
async fn case_20_what_is_of_another_type_is_not_found_and_not_removed() -> Result<()> {
    let world = World::new().await?;
    world.memory.keep("theirs", Record::Other);
    assert_eq!(world.get("theirs").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(world.get("nobody").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(world.get("").await.unwrap_err().code(), Code::NotFound);
    world.delete("theirs").await?;
    assert_eq!(world.memory.ids(), ["theirs"]);
    Ok(())
}

#[tokio::test]
async fn case_19_and_21_what_is_broken_or_unknown_does_not_spoil_the_list() -> Result<()> {
    let world = World::new().await?;
    world.put(packed(&pool("one"))).await?;
    world.memory.keep("theirs", Record::Other);
    world.memory.keep("torn", Record::Broken("its size is gone".to_owned()));
    world.put(packed(&pool("two"))).await?;
    assert_eq!(world.list().await?.iter().map(id_of).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(world.memory.ids(), ["one", "theirs", "torn", "two"], "all are kept");
    let torn = world.get("torn").await.unwrap_err();
    assert_eq!(torn.code(), Code::DataLoss);
    assert!(torn.message().contains("its size is gone"), "{}", torn.message());
    world.delete("torn").await?;
    assert_eq!(world.memory.ids(), ["one", "theirs", "two"]);
    Ok(())
}

#[tokio::test]
async fn scarce_capacity_is_told_with_the_code_of_azure() -> Result<()> {
    let world = World::new().await?;
    let refused = world.put(packed(&pool("scarce"))).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("OperationNotAllowed"), "{}", refused.message());
    assert_eq!(trouble_in(&refused).unwrap_or_default().class(), Class::Capacity);
    Ok(())
}

#[tokio::test]
async fn the_same_pool_again_is_the_same_and_another_is_refused() -> Result<()> {
    let world = World::new().await?;
    let made = world.put(packed(&pool("changed"))).await?;
    let other_token = changed(|_, kubeadm| kubeadm.token = Some("new.token".to_owned()));
    assert_eq!(world.put(packed(&other_token)).await?, made);
    let larger = changed(|spec, _| spec.os_disk_size_gb = Some(512));
    let refused = world.put(packed(&larger)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    Ok(())
}

#[tokio::test]
async fn the_instance_of_a_pool_is_number_0_and_goes_with_it() -> Result<()> {
    let world = World::new().await?;
    let mut instances = world.instances.clone();
    let id = |id: &str| Some(id.to_owned());
    world.put(packed(&pool("one"))).await?;
    world.put(packed(&pool("two"))).await?;
    world.memory.keep("theirs", Record::Other);
    let all = instances.list(ListRequest::default()).await?.into_inner().items;
    assert_eq!(all.len(), 2);
    let of_two = instances.list(ListRequest { id: id("two") }).await?.into_inner().items;
    let shown = instances.get(GetRequest { id: id("two/0") }).await?.into_inner().item;
    let shown = shown.unwrap_or_default();
    assert_eq!(of_two, std::slice::from_ref(&shown));
    assert_eq!(shown.type_url, INSTANCE);
    let metadata = Instance::decode(shown.value.as_slice())?.metadata.unwrap_or_default();
    assert_eq!(metadata.id.as_deref(), Some("two/0"));

    for absent in ["two", "two/1", "/0", "", "nobody/0", "theirs/0"] {
        let got = instances.get(GetRequest { id: id(absent) }).await.unwrap_err();
        assert_eq!(got.code(), Code::NotFound, "{absent}");
        let restart = instances.restart(InstanceRestartRequest { id: id(absent) });
        assert_eq!(restart.await.unwrap_err().code(), Code::NotFound, "{absent}");
        instances.delete(DeleteRequest { id: id(absent) }).await?;
    }
    let listed = instances.list(ListRequest { id: id("nobody") }).await.unwrap_err();
    assert_eq!(listed.code(), Code::NotFound);

    instances.restart(InstanceRestartRequest { id: id("two/0") }).await?;
    assert_eq!(world.memory.restarted(), ["two"]);
    instances.delete(DeleteRequest { id: id("two/0") }).await?;
    assert_eq!(world.memory.ids(), ["one", "theirs"]);
    let made = instances.create_or_update(CreateOrUpdateRequest { item: Some(shown) }).await;
    assert_eq!(made.unwrap_err().code(), Code::Unimplemented);
    Ok(())
}

#[test]
fn an_authority_is_the_same_however_its_pem_is_laid_out() -> Result<()> {
    let (ours, foreign) = (Authority::new()?.pem(), Authority::new()?.pem());
    let windows = format!("# ours\r\n{}", ours.replace('\n', "\r\n"));
    assert!(same_authority(windows.as_bytes(), ours.as_bytes()));
    // While the authority is renewed, a cluster has two certificates.
    let both = format!("{ours}{foreign}");
    assert!(same_authority(ours.as_bytes(), both.as_bytes()));
    for other in [foreign.as_str(), both.as_str(), "", "ours"] {
        assert!(!same_authority(other.as_bytes(), ours.as_bytes()), "{other}");
    }
    assert!(!same_authority(b"", b""));
    Ok(())
}
