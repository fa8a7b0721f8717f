//! The gRPC service that Karpenter's provider calls, called by a client that knows only the service
//! definition: on a real API server, with machines that are created in the simulated Azure.

use anyhow::{Context as _, Result};
use bringup_flex::hash;
use bringup_objects::flex::machine::Phase;
use bringup_provision::grpc::refusal::trouble_in;
use bringup_provision::grpc::v1;
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use bringup_provision::grpc::v1::trouble::Class;
use bringup_testbed::wait::{in_time, is_gone, until_object};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::common::{self, FlexBed};

const SIZE: &str = "node.kubernetes.io/instance-type";
const ORDINARY: &str = "Standard_D8s_v5";
const GPU: &str = "Standard_NC24ads_A100_v4";

type Provider = ProviderClient<Channel>;

fn claim(name: &str, uid: &str, class: &str, size: &str) -> v1::Claim {
    v1::Claim {
        name: name.to_owned(),
        uid: uid.to_owned(),
        node_class: class.to_owned(),
        node_pool: "pool".to_owned(),
        labels: [("team".to_owned(), "red".to_owned())].into(),
        requirements: vec![v1::Requirement {
            key: SIZE.to_owned(),
            operator: "In".to_owned(),
            values: vec![size.to_owned()],
            min_values: None,
        }],
        requests: [("cpu".to_owned(), "2".to_owned())].into(),
        ..v1::Claim::default()
    }
}

/// Creates an instance. As Karpenter does, it repeats the request as long as the instance does not exist
/// yet.
async fn created(provider: &mut Provider, claim: &v1::Claim) -> Result<v1::Instance, Status> {
    let asked = async {
        loop {
            let request = v1::CreateRequest { claim: Some(claim.clone()) };
            match provider.create(request).await {
                Ok(made) => break Ok(made.into_inner().instance.unwrap_or_default()),
                Err(status) if class_of(&status) == Class::Transient => {}
                Err(status) => break Err(status),
            }
        }
    };
    in_time("an answer", asked).await.expect("an answer")
}

fn class_of(status: &Status) -> Class {
    trouble_in(status).map_or(Class::Unspecified, |trouble| trouble.class())
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, Class, String) {
    let status = answer.expect_err("a refusal");
    let trouble = trouble_in(&status).expect("the trouble is among the details");
    (status.code(), trouble.class(), trouble.message)
}

#[tokio::test]
async fn a_client_of_the_service_makes_finds_and_removes_a_machine() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    let mut provider = bed.provider().await?;

    let types = v1::GetInstanceTypesRequest {
        node_pool: "pool".to_owned(),
        node_class: "plain".to_owned(),
    };
    let types = provider.get_instance_types(types).await?.into_inner().instance_types;
    let ordinary = types.iter().find(|one| one.name == ORDINARY).context("the ordinary size")?;
    assert_eq!(ordinary.capacity["cpu"], "8");
    assert!(ordinary.offerings.iter().any(|one| one.available && one.price > 0.0));

    let uid = bed.claim("one", "plain").await?;
    let wanted = claim("one", &uid, "plain", ORDINARY);
    let instance = created(&mut provider, &wanted).await?;
    assert!(instance.provider_id.starts_with("azure-flex:///subscriptions/"), "{instance:?}");
    assert_eq!((instance.claim.as_str(), instance.deleting), ("one", false));
    assert_eq!(instance.labels[SIZE], ORDINARY);
    let machine = bed.machine_in("one", Phase::Running).await?;
    assert_eq!(machine.spec.labels["team"], "red");

    // A second request creates no second instance.
    let again = created(&mut provider, &wanted).await?;
    assert_eq!(again.provider_id, instance.provider_id);
    assert_eq!(bed.held().len(), 3, "a VM, a NIC and a disk: {:?}", bed.held());

    let listed = provider.list(v1::ListRequest {}).await?.into_inner().instances;
    let ids: Vec<&str> = listed.iter().map(|one| one.provider_id.as_str()).collect();
    assert_eq!(ids, [&instance.provider_id]);
    let get = || v1::GetRequest { provider_id: instance.provider_id.clone() };
    let found = provider.get(get()).await?.into_inner().instance.context("an instance")?;
    assert_eq!(found.claim, "one");

    // The class changes, and the instance is drifted.
    let annotated = v1::Claim { annotations: instance.annotations.clone(), ..wanted.clone() };
    assert!(annotated.annotations.contains_key(hash::ANNOTATION));
    let drifted = || v1::IsDriftedRequest { claim: Some(annotated.clone()) };
    assert_eq!(provider.is_drifted(drifted()).await?.into_inner().reason, "");
    let change = json!({ "spec": { "tags": { "cost": "7" } } });
    bed.classes().patch("plain", &PatchParams::default(), &Patch::Merge(&change)).await?;
    let noticed = async {
        while provider.is_drifted(drifted()).await?.into_inner().reason.is_empty() {}
        anyhow::Ok(())
    };
    in_time("the change to be noticed", noticed).await??;

    // The test repeats the delete request until nothing of the instance is left.
    let left = async {
        loop {
            let request = v1::DeleteRequest { claim: Some(wanted.clone()) };
            match provider.delete(request).await {
                Ok(_) => {}
                Err(status) => break status,
            }
        }
    };
    let status = in_time("its end", left).await?;
    assert_eq!((status.code(), class_of(&status)), (Code::NotFound, Class::NotFound));
    assert_eq!(bed.held(), [""; 0]);
    let (code, class, _) = refused(provider.get(get()).await);
    assert_eq!((code, class), (Code::NotFound, Class::NotFound));
    assert!(provider.list(v1::ListRequest {}).await?.into_inner().instances.is_empty());
    Ok(())
}

#[tokio::test]
async fn refusals_of_the_service_have_a_class_a_cause_and_a_message() -> Result<()> {
    let scarce = "quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]\nrules: [{name: none, when: {size: Standard_D8s_v5}, refuse: {status: 409, code: SkuNotAvailable, message: \"The requested VM size is not available in location eastus2.\"}}]";
    let bed = FlexBed::new(scarce).await?;
    bed.ready_class("plain").await?;
    let mut provider = bed.provider().await?;

    // Without quota, nothing is requested from Azure.
    let uid = bed.claim("dear", "plain").await?;
    let answer = created(&mut provider, &claim("dear", &uid, "plain", GPU)).await;
    let cause = answer.as_ref().err().and_then(trouble_in).unwrap_or_default().cause;
    let (code, class, words) = refused(answer);
    assert_eq!(
        (code, class, cause.as_str()),
        (Code::ResourceExhausted, Class::Capacity, "QuotaExceeded")
    );
    assert!(words.contains("0 of 0 processors") && words.contains("eastus2"), "{words}");

    // If Azure has no capacity, the machine is deleted, and Azure gets no second request for the same
    // size.
    for name in ["scarce", "scarcer"] {
        let uid = bed.claim(name, "plain").await?;
        let answer = created(&mut provider, &claim(name, &uid, "plain", ORDINARY)).await;
        let cause = answer.as_ref().err().and_then(trouble_in).unwrap_or_default();
        assert_eq!(cause.class(), Class::Capacity, "{cause:?}");
        assert_eq!(cause.arm_code, "SkuNotAvailable", "{cause:?}");
        bed.claims().delete(name, &kube::api::DeleteParams::default()).await?;
        until_object(bed.machines(), name, "a machine that is gone", is_gone).await?;
    }
    bed.until_held(&[]).await?;
    let asked = bed.azure.with(|azure| {
        let all = azure.journal().requests();
        all.iter().filter(|one| one.method == "PUT" && one.path.contains("virtualMachines")).count()
    });
    assert_eq!(asked, 1, "the second was answered from what Azure had said to the first");

    // A class that does not exist, and one that is not ready.
    let (code, class, words) =
        refused(created(&mut provider, &claim("lost", "uid", "nowhere", ORDINARY)).await);
    assert_eq!((code, class), (Code::FailedPrecondition, Class::NotReady));
    assert!(words.contains("nowhere"), "{words}");
    let mut broken = common::class("broken");
    broken["spec"]["subnetID"] = json!(common::SUBNET.replace("/nodes", "/none"));
    bed.create_class(&broken).await?;
    let unready = common::condition_is("Ready", "False");
    until_object(bed.classes(), "broken", "a class that is not ready", unready).await?;
    let broken_class = async {
        loop {
            let answer = created(&mut provider, &claim("lost", "uid", "broken", ORDINARY)).await;
            let (code, class, words) = refused(answer);
            // Until the service has seen the class, the class does not exist for it.
            if !words.contains("AzureFlexNodeClass broken does not exist") {
                break (code, class);
            }
        }
    };
    let broken_class = in_time("the class to be known", broken_class).await?;
    assert_eq!(broken_class, (Code::FailedPrecondition, Class::NotReady));

    // Requests with missing or invalid fields.
    let empty = v1::Claim::default();
    let no_uid = claim("x", "", "plain", ORDINARY);
    let mut odd = claim("x", "u", "plain", ORDINARY);
    odd.requests.insert("cpu".to_owned(), "many".to_owned());
    for (wrong, field_name) in [(empty, "claim.name"), (no_uid, "claim.uid"), (odd, "cpu")] {
        let (code, class, words) = refused(created(&mut provider, &wrong).await);
        assert_eq!((code, class), (Code::InvalidArgument, Class::Request), "{words}");
        assert!(words.contains(field_name), "{words}");
    }
    for id in ["", "aws:///i-1", "azure-flex:///nonsense"] {
        let request = v1::GetRequest { provider_id: id.to_owned() };
        let (code, _, words) = refused(provider.get(request).await);
        assert_eq!(code, Code::InvalidArgument);
        assert!(words.contains("provider_id"), "{words}");
    }
    // A delete request with the name of a NodeClaim and another uid deletes nothing.
    let stranger = v1::DeleteRequest { claim: Some(claim("dear", "stranger", "plain", GPU)) };
    assert_eq!(refused(provider.delete(stranger).await).0, Code::NotFound);
    Ok(())
}
