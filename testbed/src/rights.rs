//! Binds roles, and waits until the API server enforces them.

use k8s_openapi::api::{
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
    },
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};

use crate::{Error, Result, User, wait};

/// The user name of a kubelet that has no certificate yet.
pub(crate) const BOOTSTRAP_USER: &str = "system:bootstrap:testbed";
pub(crate) const BOOTSTRAP_GROUP: &str = "system:bootstrappers";

const RBAC: &str = "rbac.authorization.k8s.io";

/// Binds `role` to `user`.
pub(crate) async fn bind(client: &Client, user: &User, role: &str) -> Result<()> {
    let subject = Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "User".to_owned(),
        name: user.name().to_owned(),
        namespace: None,
    };
    let name = format!("testbed:{}:{role}", user.name());
    apply_binding(client, &name, subject, role).await?;
    await_rules(client, user.name(), user.group(), role).await
}

/// Lets machines with a bootstrap token request a certificate, as installers of clusters do.
///
/// This does not approve the request: the role that would let the controller manager approve it is not bound.
pub(crate) async fn let_kubelets_join(client: &Client) -> Result<()> {
    let role = "system:node-bootstrapper";
    let subject = Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "Group".to_owned(),
        name: BOOTSTRAP_GROUP.to_owned(),
        namespace: None,
    };
    apply_binding(client, "testbed:kubelet-bootstrap", subject, role).await?;
    await_rules(client, BOOTSTRAP_USER, Some(BOOTSTRAP_GROUP), role).await
}

async fn apply_binding(client: &Client, name: &str, subject: Subject, role: &str) -> Result<()> {
    let binding = ClusterRoleBinding {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![subject]),
    };
    let api: Api<ClusterRoleBinding> = Api::all(client.clone());
    let params = PatchParams::apply("bringup-testbed").force();
    api.patch(name, &params, &Patch::Apply(&binding))
        .await
        .map(|_binding| ())
        .map_err(Error::api(format!("bind the cluster role {role} as {name}")))
}

/// Waits until the authorizer knows the binding and every rule of the role.
async fn await_rules(client: &Client, user: &str, group: Option<&str>, role: &str) -> Result<()> {
    let api: Api<ClusterRole> = Api::all(client.clone());
    let rules =
        api.get(role).await.map_err(Error::api(format!("get the cluster role {role}")))?.rules;
    for rule in rules.iter().flatten() {
        let review = review(user, group, rule);
        let awaited = format!("{user} getting the rights of {role}");
        wait::answer(&awaited, async || {
            let allowed = is_allowed(client, &review).await?;
            Ok(allowed.then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// A review of one request that the rule allows.
fn review(user: &str, group: Option<&str>, rule: &PolicyRule) -> SubjectAccessReview {
    let verb = rule.verbs.first().cloned();
    let first = |list: &Option<Vec<String>>| list.iter().flatten().next().cloned();
    let mut spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        groups: group.map(|group| vec![group.to_owned()]),
        ..SubjectAccessReviewSpec::default()
    };
    if let Some(path) = first(&rule.non_resource_urls) {
        spec.non_resource_attributes = Some(NonResourceAttributes { path: Some(path), verb });
    } else {
        let resource = first(&rule.resources).unwrap_or_default();
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
            None => (resource, None),
        };
        spec.resource_attributes = Some(ResourceAttributes {
            verb,
            group: first(&rule.api_groups),
            resource: Some(resource),
            subresource,
            name: first(&rule.resource_names),
            ..ResourceAttributes::default()
        });
    }
    SubjectAccessReview { spec, ..SubjectAccessReview::default() }
}

async fn is_allowed(client: &Client, review: &SubjectAccessReview) -> Result<bool> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = api
        .create(&PostParams::default(), review)
        .await
        .map_err(Error::api("ask what a user may do"))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
