//! The printed MachineHealthCheck. The end-to-end tests of remediation show that Cluster API accepts it and
//! how Cluster API uses it.

#![allow(clippy::unwrap_used, reason = "an example that cannot be read is a failed test")]

mod common;

use common::{bringup, fits, workspace};

fn printed(arguments: &[&str]) -> String {
    let ran = bringup(&[&["machine-health-check"], arguments].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    ran.out
}

#[test]
fn the_example_is_what_is_printed() {
    let file = workspace().join("examples/cluster-api/machine-health-check.yaml");
    let example = std::fs::read_to_string(file).unwrap();
    let printed = printed(&["--cluster", "example", "--namespace", "default"]);
    assert!(
        printed == example,
        "run `bringup machine-health-check --cluster example --namespace default >examples/cluster-api/machine-health-check.yaml`"
    );
    fits(&printed);
}

#[test]
fn only_the_condition_that_says_that_a_new_machine_helps_is_checked() {
    let printed = printed(&["--cluster", "prod"]);
    assert_eq!(printed.matches("- type: ").count(), 1);
    assert!(printed.contains("- type: bringup.dev/ReplacementUseful\n      status: \"True\"\n"));
    assert!(!printed.contains("namespace:"), "it goes where it is applied");
}

#[test]
fn machines_of_the_control_plane_are_left_alone_unless_they_are_asked_for() {
    let workers = printed(&["--cluster", "prod"]);
    assert!(workers.contains("- key: cluster.x-k8s.io/deployment-name\n      operator: Exists\n"));
    assert!(!workers.contains("control-plane"));
    let asked = printed(&["--cluster", "prod", "--control-plane"]);
    assert!(asked.contains("- key: cluster.x-k8s.io/control-plane\n      operator: Exists\n"));
    assert!(asked.contains("name: prod-control-plane-bringup\n"), "it stands beside the other");
    let one = printed(&["--cluster", "prod", "--machine-deployment", "prod-md-0"]);
    assert!(one.contains("matchLabels:\n      cluster.x-k8s.io/deployment-name: prod-md-0\n"));
}

#[test]
fn a_name_stays_a_name_and_a_time_is_in_seconds() {
    let printed = printed(&["--cluster", "12", "-n", "on", "--startup-timeout", "15m"]);
    assert!(printed.contains("clusterName: \"12\"\n") && printed.contains("namespace: \"on\"\n"));
    assert!(printed.contains("nodeStartupTimeoutSeconds: 900\n"));
}

#[test]
fn what_cluster_api_would_refuse_is_refused_here() {
    for (arguments, why) in [
        (&["--startup-timeout", "29s"][..], "at least 30s"),
        (&["--startup-timeout", "90000d"], "longer than Cluster API allows"),
        (&["--max-unhealthy", "101%"], "a number or a percentage"),
        (&["--max-unhealthy", "some"], "a number or a percentage"),
        (&["--machine-deployment", "a: b"], "at most 63 lowercase letters"),
        (&["--machine-deployment", "a", "--control-plane"], "cannot be used with"),
    ] {
        let ran = bringup(&[&["machine-health-check", "--cluster", "prod"], arguments].concat());
        assert_eq!(ran.code, 64, "{arguments:?}");
        assert!(ran.err.contains(why), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(bringup(&["machine-health-check"]).code, 64, "a cluster has to be named");
}
