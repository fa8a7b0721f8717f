//! The controller with exactly the rights that the chart grants, and with each of them missing.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::test_bed::shared;
use bringup_objects::flex::TOKENS_NAMESPACE;
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::rights::{NEEDED, Needed, Place};
use bringup_testbed::{ControlPlane, User};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

mod rights {
    mod flex;
}

const ORAS_MISSING: &str = include_str!("../scenarios/demo.yaml");

fn rule(needed: &Needed) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![needed.group.to_owned()]),
        resources: Some(vec![needed.resource.to_owned()]),
        verbs: vec![needed.verb.to_owned()],
        resource_names: needed.name.map(|name| vec![name.to_owned()]),
        ..PolicyRule::default()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// A user with all rights that the controller needs, except one.
async fn user(bed: &TestBed, name: &str, without: Option<&Needed>) -> Result<User> {
    let granted = NEEDED.iter().filter(|needed| Some(*needed) != without).copied();
    let granted: Vec<Needed> = granted.collect();
    grant(shared().await?, &bed.settings.namespace, name, &granted).await
}

/// A user with exactly these rights.
async fn grant(
    plane: &ControlPlane,
    namespace: &str,
    name: &str,
    granted: &[Needed],
) -> Result<User> {
    let user = plane.user(name, None).await?;
    let client = plane.client();
    let subject = Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "User".to_owned(),
        name: name.to_owned(),
        ..Subject::default()
    };
    let reference = |kind: &str| RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let parameters = PostParams::default();
    let at = |place: Place| granted.iter().filter(move |needed| needed.place == place).map(rule);
    let rules = at(Place::Everywhere).collect();
    let role = ClusterRole { metadata: named(name), rules: Some(rules), ..ClusterRole::default() };
    Api::all(client.clone()).create(&parameters, &role).await?;
    let binding = ClusterRoleBinding {
        metadata: named(name),
        role_ref: reference("ClusterRole"),
        subjects: Some(vec![subject.clone()]),
    };
    Api::all(client.clone()).create(&parameters, &binding).await?;
    for (namespace, place) in
        [(namespace, Place::Home), (TOKENS_NAMESPACE, Place::Namespace(TOKENS_NAMESPACE))]
    {
        let role = Role { metadata: named(name), rules: Some(at(place).collect()) };
        Api::namespaced(client.clone(), namespace).create(&parameters, &role).await?;
        let binding = RoleBinding {
            metadata: named(name),
            role_ref: reference("Role"),
            subjects: Some(vec![subject.clone()]),
        };
        Api::namespaced(client.clone(), namespace).create(&parameters, &binding).await?;
    }
    Ok(user)
}

#[tokio::test]
async fn with_exactly_the_rights_of_the_chart_everything_works() -> Result<()> {
    let mut bed = TestBed::named("allrights", ORAS_MISSING).await?;
    bed.settings.reports_per_parent = 1;
    let user = user(&bed, "allrights", None).await?;
    let running = bed.observe_with(user.client(), EffectHook::default());
    running.controller.check_rights().await;
    for name in ["a", "b"] {
        let claim = bed.claim_name(name);
        bed.fail(&claim, &Order::of("202601.27.0")).await?;
        bed.failed_claim(&claim).await?;
        bed.report_of(&claim).await?;
        bed.karpenter.clean_up(&claim).await?;
        bed.azure.advance(Duration::from_secs(30));
    }
    // Both claims are deleted, so that only the newest report stays.
    let newest = bed.claim_name("b");
    bed.reports_when("the newest report alone", |reports| {
        reports.len() == 1 && reports[0].spec.target_ref.name == newest
    })
    .await?;
    assert!(running.controller.health().not_ready().is_empty());
    assert_eq!(running.controller.health().degraded(), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn each_right_that_is_missing_is_named_and_nothing_crashes() -> Result<()> {
    for (number, needed) in NEEDED.iter().enumerate() {
        let name = format!("lacks{number}");
        let bed = TestBed::named(&name, ORAS_MISSING).await?;
        let user = user(&bed, &name, Some(needed)).await?;
        let running = bed.observe_with(user.client(), EffectHook::default());
        let claim = bed.claim_name("a");
        bed.fail(&claim, &Order::of("202601.27.0")).await?;

        running.controller.check_rights().await;
        let health = running.controller.health();
        let words = needed.words();
        if needed.right.is_vital() {
            let said = health.not_ready();
            assert!(said.iter().any(|line| line.contains(&words)), "{words}: {said:?}");
        } else {
            assert_eq!(health.not_ready(), Vec::<String>::new(), "{words}");
        }
        assert!(health.degraded().contains(&"rights".to_owned()), "{words}");
        let metrics = running.controller.metrics().text();
        assert!(metrics.contains("bringup_degraded{what=\"rights\"} 1"), "{words}");
        // Work that does not depend on this right continues.
        let announces = needed.group == "events.k8s.io";
        if !needed.right.is_vital() && !announces {
            bed.azure.advance(Duration::from_mins(1));
            bed.report().await.with_context(|| format!("without {words}"))?;
        }
        assert!(!running.is_finished(), "{words}");
    }
    Ok(())
}
