//! `bringup nodeconfig`, run as a process.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod common;

use common::{bringup, bringup_reads};

const WHOLE: &str = r#"{"version":"v1","vm_size":"Standard_D2s_v5","later":1,
  "auth_config":{"subscription_id":"s"},"api_server_config":{"api_server_name":"a.test"},
  "bootstrapping_config":{"tls_bootstrapping_token":"abcdef.0123456789abcdef"},
  "cluster_config":{"resource_group":"g","location":"eastus",
    "cluster_network_config":{"vnet_name":"v","route_table":"r"}}}"#;

#[test]
fn a_whole_configuration_is_valid_and_what_is_unknown_is_named() {
    let ran = bringup_reads(&["nodeconfig", "validate", "-"], WHOLE.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "note: later: unknown field, ignored\n-: valid\n");
}

#[test]
fn missing_fields_and_broken_text_end_with_65() {
    let ran = bringup_reads(&["nodeconfig", "validate", "-"], br#"{"version":"v1"}"#);
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("cluster_config.location"), "{}", ran.err);
    let ran = bringup_reads(&["nodeconfig", "validate", "-"], br#"{"enable_ssh":"yes"}"#);
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("line 1 column 15"), "{}", ran.err);
    let ran = bringup_reads(&["nodeconfig", "env", "-"], b"");
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("line 1 column 1: unexpected end"), "{}", ran.err);
    assert_eq!(bringup(&["nodeconfig", "validate", "nothing.json"]).code, 65);
    assert_eq!(bringup(&["nodeconfig", "bogus"]).code, 64);
    assert_eq!(bringup(&["nodeconfig"]).code, 64);
}

#[test]
fn the_environment_is_printed_for_people_and_for_programs() {
    let ran = bringup_reads(&["nodeconfig", "env", "-"], WHOLE.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.lines().any(|line| line == "LOCATION=eastus"));
    assert_eq!(ran.out.lines().count(), 164);
    assert_eq!(ran.err, "note: later: unknown field, ignored\n");
    let arguments = ["nodeconfig", "env", "-", "-o", "json", "--containerd-version", "2.1.4"];
    let json = bringup_reads(&arguments, WHOLE.as_bytes()).json();
    assert_eq!(json["TLS_BOOTSTRAP_TOKEN"], "abcdef.0123456789abcdef");
    let arguments = ["nodeconfig", "env", "-", "--containerd-version", "new"];
    assert_eq!(bringup_reads(&arguments, WHOLE.as_bytes()).code, 64);
}

#[test]
fn what_a_vm_needs_is_the_same_every_time() {
    let run = |arguments: &[&str]| {
        let ran = bringup_reads(arguments, WHOLE.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let boothook = run(&["nodeconfig", "custom-data", "-"]);
    assert_eq!(boothook, run(&["nodeconfig", "custom-data", "-", "--format", "boothook"]));
    assert_ne!(boothook, run(&["nodeconfig", "custom-data", "-", "--format", "cloud-config"]));
    assert_ne!(boothook, run(&["nodeconfig", "ignition", "-"]));
    let cse = run(&["nodeconfig", "cse", "-"]);
    assert_eq!(cse, "/opt/azure/containers/aks-node-controller provision-wait\n");
    let body: serde_json::Value =
        serde_json::from_str(&run(&["nodeconfig", "scale-set", "-", "--capacity", "2"])).unwrap();
    assert_eq!(body["sku"]["capacity"], 2);
    let profile = &body["properties"]["virtualMachineProfile"];
    assert_eq!(profile["osProfile"]["customData"], boothook.trim_end());
    assert_eq!(profile["extensionProfile"]["extensions"][0]["name"], "vmssCSE");
}
