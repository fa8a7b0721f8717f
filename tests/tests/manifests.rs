//! The installation on a real API server: the plain manifests, the chart with everything on, and the
//! rights that follow from them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use bringup_objects::report::{
    BootstrapReport, CseResult, EvidenceLine, Phase, ReportSpec, ReportStatus, ReportVerdict,
    TargetReference,
};
use bringup_runtime::rights::{NEEDED, Needed, Place};
use bringup_testbed::wait::{polled, until, until_object};
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};
use tokio::sync::OnceCell;

mod manifests {
    mod flex;
    mod karpenter;
    mod machines;
    mod policy;
}

const NAMESPACE: &str = "bringup-system";
const ACCOUNT: &str = "system:serviceaccount:bringup-system:bringup";

#[tokio::test]
async fn the_plain_manifests_are_accepted_and_applying_them_again_changes_nothing() -> Result<()> {
    let control_plane = control_plane().await?;
    let manifests = root().join("manifests/bringup.yaml");
    let applied = apply(control_plane, &manifests, &["--dry-run=server"])?;
    for object in [
        "customresourcedefinition.apiextensions.k8s.io/bootstrapreports.bringup.dev",
        "deployment.apps/bringup",
        "poddisruptionbudget.policy/bringup",
        "networkpolicy.networking.k8s.io/bringup",
        "service/bringup",
        "serviceaccount/bringup",
        "clusterrole.rbac.authorization.k8s.io/bringup-reader",
    ] {
        assert!(applied.contains(object), "{object} is not among\n{applied}");
    }

    let versions = versions(control_plane).await?;
    apply(control_plane, &manifests, &[])?;
    assert_eq!(self::versions(control_plane).await?, versions);
    Ok(())
}

#[tokio::test]
async fn the_chart_with_everything_on_is_accepted() -> Result<()> {
    let control_plane = control_plane().await?;
    let directory = tempfile::tempdir()?;
    let manifests = directory.path().join("everything.yaml");
    let chart = render(&["--values", "charts/tests/everything.yaml"])?;
    std::fs::write(&manifests, chart)?;
    let applied = apply(control_plane, &manifests, &["--dry-run=server", "--force-conflicts"])?;
    for object in [
        "servicemonitor.monitoring.coreos.com/bringup",
        "prometheusrule.monitoring.coreos.com/bringup",
        "configmap/bringup-dashboard",
    ] {
        assert!(applied.contains(object), "{object} is not among\n{applied}");
    }
    Ok(())
}

#[tokio::test]
async fn helm_installs_the_chart_and_leaves_the_definition_when_it_uninstalls() -> Result<()> {
    let sets = [CrdSet::KarpenterAzure, CrdSet::Prometheus];
    let control_plane = ControlPlane::builder().crds(sets).start().await?;
    let home = tempfile::tempdir()?;
    let run = |arguments: &[&str]| {
        let mut helm = helm(home.path())?;
        helm.env("KUBECONFIG", control_plane.kubeconfig_path());
        output(helm.args(arguments).args(["--namespace", "elsewhere"]))
    };
    let values = ["--create-namespace", "--values", "charts/tests/everything.yaml"];
    let notes = run(&[&["install", "observer", "charts/bringup"], &values[..]].concat())?;
    assert!(notes.contains("dryRun is true"), "{notes}");
    assert!(!notes.contains("TO DO"), "{notes}");
    let deployments: Api<Deployment> = Api::namespaced(control_plane.client(), "elsewhere");
    assert!(deployments.get_opt("observer-bringup").await?.is_some());
    let roles: Api<ClusterRole> = Api::all(control_plane.client());
    assert!(roles.get_opt("elsewhere-observer-bringup").await?.is_some());

    run(&["upgrade", "observer", "charts/bringup"])?;
    run(&["uninstall", "observer"])?;
    assert!(deployments.get_opt("observer-bringup").await?.is_none());
    assert!(roles.get_opt("elsewhere-observer-bringup").await?.is_none());
    kubectl(&control_plane, &["get", "customresourcedefinition", "bootstrapreports.bringup.dev"])?;
    Ok(())
}

#[tokio::test]
async fn a_report_is_stored_whole_and_only_as_its_definition_says() -> Result<()> {
    let control_plane = control_plane().await?;
    let reports: Api<BootstrapReport> = Api::namespaced(control_plane.client(), NAMESPACE);
    let report = report("default-x7k2p-0123456789");
    let created = reports.create(&PostParams::default(), &report).await?;
    assert_eq!(created.status, report.status);
    let read = reports.get(&report.name_any()).await?;
    assert_eq!((&read.spec, &read.status), (&report.spec, &report.status));

    let mut table = kubectl(control_plane, &["get", "bsr", "--namespace", NAMESPACE])?;
    table.retain(|letter| letter != '\n');
    let columns: Vec<&str> = table.split_whitespace().collect();
    let header = ["NAME", "CAUSE", "CODE", "IMAGE", "SIZE", "ZONE", "TARGET"];
    assert_eq!(columns[..header.len()], header);
    assert!(table.contains("BinaryMissing   211    202601.27.0"), "{table}");

    let mut too_long = self::report("default-too-long");
    let line = "x".repeat(bringup_objects::report::LONGEST_LINE + 1);
    let status = too_long.status.as_mut().context("the report has a status")?;
    status.root_evidence = Some(EvidenceLine { line, ..EvidenceLine::default() });
    let refused = reports.create(&PostParams::default(), &too_long).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 422));
    Ok(())
}

#[tokio::test]
async fn a_pod_of_the_controller_meets_the_restricted_standard() -> Result<()> {
    let control_plane = control_plane().await?;
    let deployments: Api<Deployment> = Api::namespaced(control_plane.client(), NAMESPACE);
    let template = deployments.get("bringup").await?.spec.context("no spec")?.template;
    let metadata = template.metadata.unwrap_or_default();
    let mut pod = Pod {
        metadata: ObjectMeta { name: Some("bringup-0".to_owned()), ..metadata },
        spec: template.spec,
        status: None,
    };
    let pods: Api<Pod> = Api::namespaced(control_plane.client(), NAMESPACE);
    let try_out = PostParams { dry_run: true, ..PostParams::default() };
    let admitted = pods.create(&try_out, &pod).await?;
    let label = admitted.labels().get("azure.workload.identity/use");
    assert_eq!(label.map(String::as_str), Some("true"));

    // Both replicas are really made, by the real controllers.
    let has_both = |deployment: Option<&Deployment>| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.and_then(|status| status.replicas) == Some(2)
    };
    until_object(deployments, "bringup", "two replicas", has_both).await?;

    // The restricted standard is in force: the same pod as root is refused.
    let security = pod.spec.as_mut().and_then(|spec| spec.security_context.as_mut());
    security.context("no security context")?.run_as_user = Some(0);
    let refused = pods.create(&try_out, &pod).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

#[tokio::test]
async fn the_controller_may_do_its_work_and_nothing_else() -> Result<()> {
    let control_plane = control_plane().await?;
    let everywhere: Vec<Needed> =
        NEEDED.into_iter().filter(|needed| needed.place == Place::Everywhere).collect();
    let at_home: Vec<Needed> =
        NEEDED.into_iter().filter(|needed| needed.place == Place::Home).collect();
    let roles: Api<ClusterRole> = Api::all(control_plane.client());
    let role = roles.get("bringup").await?;
    assert_eq!(grants(role.rules.as_deref()), expected(&everywhere));
    let roles: Api<Role> = Api::namespaced(control_plane.client(), NAMESPACE);
    let role = roles.get("bringup").await?;
    assert_eq!(grants(role.rules.as_deref()), expected(&at_home));

    for (namespace, grants) in [("default", everywhere), (NAMESPACE, at_home)] {
        for Needed { group, resource, verb, .. } in
            grants.into_iter().filter(|it| it.name.is_none())
        {
            becomes_allowed(control_plane, namespace, group, resource, verb).await?;
        }
    }
    for (group, resource, verb, namespace) in [
        ("", "secrets", "get", NAMESPACE),
        ("", "pods", "list", NAMESPACE),
        ("", "nodes", "delete", ""),
        ("karpenter.sh", "nodeclaims", "delete", ""),
        ("karpenter.sh", "nodeclaims", "patch", ""),
        ("certificates.k8s.io", "certificatesigningrequests/approval", "update", ""),
        ("bringup.dev", "bootstrapreports", "create", "default"),
        ("coordination.k8s.io", "leases", "update", "kube-node-lease"),
        // Leases of the namespace other than the controller's own.
        ("coordination.k8s.io", "leases", "update", NAMESPACE),
        ("coordination.k8s.io", "leases", "get", NAMESPACE),
    ] {
        let allowed = may(control_plane, namespace, group, resource, verb).await?;
        assert!(!allowed, "{verb} {resource} in {namespace:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_user_who_may_view_a_namespace_may_read_its_reports() -> Result<()> {
    let control_plane = control_plane().await?;
    let roles: Api<ClusterRole> = Api::all(control_plane.client());
    for name in ["view", "edit", "admin"] {
        let reads = |role: Option<&ClusterRole>| {
            let grants = grants(role.and_then(|role| role.rules.as_deref()));
            let verbs = grants.iter().filter(|(group, _, _)| group == "bringup.dev");
            verbs.map(|(_, _, verb)| verb.as_str()).eq(["get", "list", "watch"])
        };
        until_object(roles.clone(), name, "the right to read reports", reads).await?;
    }
    Ok(())
}

/// A control plane on which the plain manifests are installed.
async fn control_plane() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = async || {
        let sets = [CrdSet::KarpenterAzure, CrdSet::Prometheus];
        let control_plane =
            ControlPlane::builder().crds(sets).with_controller_manager().start().await?;
        apply(&control_plane, &root().join("manifests/bringup.yaml"), &[])?;
        let established = "--for=condition=Established";
        let definition = "customresourcedefinition/bootstrapreports.bringup.dev";
        kubectl(&control_plane, &["wait", established, definition])?;
        Ok(control_plane)
    };
    SHARED.get_or_try_init(start).await
}

/// Applies a file; an unknown field or a warning is an error.
fn apply(control_plane: &ControlPlane, file: &Path, options: &[&str]) -> Result<String> {
    let file = file.to_str().context("a path that is no text")?;
    let fixed = ["apply", "--server-side", "--validate=strict", "--warnings-as-errors"];
    kubectl(control_plane, &[&fixed, options, &["--filename", file]].concat())
}

fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> Result<String> {
    let mut command = control_plane.kubectl()?;
    output(command.args(arguments))
}

/// The chart, rendered.
fn render(options: &[&str]) -> Result<String> {
    let home = tempfile::tempdir()?;
    let mut helm = helm(home.path())?;
    helm.args(["template", "bringup", "charts/bringup", "--namespace", NAMESPACE]).args(options);
    output(&mut helm)
}

/// The helm that `make charts` uses, without the settings of the user who runs the test.
fn helm(home: &Path) -> Result<Command> {
    let mut build = Command::new(root().join("charts/tools/build.sh"));
    let tools = output(build.stderr(Stdio::inherit()))?;
    let mut helm = Command::new(Path::new(tools.trim_end()).join("helm"));
    for variable in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, home);
    }
    helm.current_dir(root());
    Ok(helm)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The versions of the Deployment and the roles, which change when a user changes one of them.
async fn versions(control_plane: &ControlPlane) -> Result<Vec<(String, String)>> {
    let ours = ListParams::default().labels("app.kubernetes.io/part-of=bringup");
    let deployments: Api<Deployment> = Api::namespaced(control_plane.client(), NAMESPACE);
    let roles: Api<ClusterRole> = Api::all(control_plane.client());
    let mut versions = Vec::new();
    for deployment in deployments.list(&ours).await? {
        versions.push((deployment.name_any(), format!("{:?}", deployment.metadata.generation)));
    }
    for role in roles.list(&ours).await? {
        versions.push((role.name_any(), format!("{:?}", role.resource_version())));
    }
    assert_eq!(versions.len(), 3, "{versions:?}");
    Ok(versions)
}

type Grant = (String, String, String);

/// Every verb on every resource that rules allow.
fn grants(rules: Option<&[PolicyRule]>) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for rule in rules.unwrap_or_default() {
        assert_eq!(rule.non_resource_urls, None);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    grants.insert((group.clone(), resource.clone(), verb.clone()));
                }
            }
        }
    }
    grants
}

fn expected(needed: &[Needed]) -> BTreeSet<Grant> {
    let grant = |needed: &Needed| {
        (needed.group.to_owned(), needed.resource.to_owned(), needed.verb.to_owned())
    };
    needed.iter().map(grant).collect()
}

/// Waits until a granted right takes effect in the API server.
async fn becomes_allowed(
    control_plane: &ControlPlane,
    namespace: &str,
    group: &str,
    resource: &str,
    verb: &str,
) -> Result<()> {
    let answers = polled(async || may(control_plane, namespace, group, resource, verb).await);
    let what = format!("the right to {verb} {resource} in {namespace}");
    until(what, answers, |is_allowed| *is_allowed).await?;
    Ok(())
}

/// Whether the API server allows this to the controller's service account.
async fn may(
    control_plane: &ControlPlane,
    namespace: &str,
    group: &str,
    resource: &str,
    verb: &str,
) -> Result<bool> {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        namespace: Some(namespace.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(ACCOUNT.to_owned()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(control_plane.client());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn report(name: &str) -> BootstrapReport {
    let target_ref = TargetReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodeClaim".to_owned(),
        name: "default-x7k2p".to_owned(),
        uid: "3f1e2d4c-0000-4000-8000-000000000001".to_owned(),
    };
    let spec = ReportSpec {
        target_ref,
        attempt: 1,
        image_version: Some("202601.27.0".to_owned()),
        vm_size: Some("Standard_D4s_v5".to_owned()),
        zone: Some("eastus-1".to_owned()),
        ..ReportSpec::default()
    };
    let mut report = BootstrapReport::new(name, spec);
    report.status = Some(ReportStatus {
        phase: Phase::Final.into(),
        verdict: Some(ReportVerdict {
            cause: bringup_contract::cause::Cause::BinaryMissing.into(),
            confidence: bringup_contract::report::Confidence::High.into(),
            title: "oras is missing from the image".to_owned(),
            overrules_code: true,
            ..ReportVerdict::default()
        }),
        cse: Some(CseResult {
            exit_code: Some(211),
            constant: Some("ERR_ORAS_PULL_NETWORK_TIMEOUT".to_owned()),
            ..CseResult::default()
        }),
        root_evidence: Some(EvidenceLine {
            source: "extension message".to_owned(),
            line: "timeout: failed to run command 'oras': No such file or directory".to_owned(),
            ..EvidenceLine::default()
        }),
        ..ReportStatus::default()
    });
    report
}
