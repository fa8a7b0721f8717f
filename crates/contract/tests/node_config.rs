//! A node's configuration: accepted and refused contents, and the environment of the scripts.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::collections::BTreeMap;
use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::node_config::{
    Components, ConfigError, Configuration, ContainerdSchema, Environment, Host, NodeConfig,
    Notable, VmType, is_feature,
};

fn refusal(text: &str) -> String {
    NodeConfig::parse(text.as_bytes()).unwrap_err().to_string()
}

fn read(text: &str) -> Configuration {
    NodeConfig::parse(text.as_bytes()).unwrap().configuration
}

fn environment(text: &str) -> Environment {
    Environment::of(&read(text), &Host::default()).unwrap()
}

fn decoded(environment: &Environment, name: &str) -> String {
    String::from_utf8(STANDARD.decode(environment.get(name).unwrap()).unwrap()).unwrap()
}

const SECRETS: &str = r#"{"version":"v1","auth_config":{"service_principal_secret":"hush-one"},
  "bootstrapping_config":{"tls_bootstrapping_token":"hush-two"},
  "kubelet_config":{"kubelet_client_key":"hush-three"},
  "custom_search_domain_config":{"realm_password":"hush-four"},
  "http_proxy_config":{"http_proxy":"http://me:hush-five@proxy"}}"#;

#[test]
fn test_e06_versions_other_than_v1_and_v0_are_refused() {
    assert_eq!(refusal(r#"{"version":"v2"}"#), "unsupported version: v2");
    assert_eq!(refusal("{}"), "unsupported version: ");
    assert_eq!(refusal(""), "line 1 column 1: unexpected end of input");
    let old = NodeConfig::parse(br#"{"version":"v0"}"#).unwrap();
    assert_eq!(old.notices[0].what, Notable::DeprecatedVersion);
}

#[test]
fn test_e07_syntax_and_type_errors_name_line_column_and_field() {
    for (text, said) in [
        (
            "{\"version\":\"v1\",\n \"kubelet_config\":{\"kubelet_flags\":{\"--a\":1}}}",
            "line 2 column 43: expected a string, found a number (field \
             kubelet_config.kubelet_flags.--a)",
        ),
        (
            r#"{"version":"v1","vm_size":"Standa"#,
            "line 1 column 34: unexpected end of input (field vm_size)",
        ),
        (r#"{"version":"v1","#, "line 1 column 17: unexpected end of input"),
        (
            r#"{"version":"v1","vm_size":"a","vmSize":"b"}"#,
            "line 1 column 31: duplicate key (field vm_size)",
        ),
        (r#"{"new":{"a":1,"a":2}}"#, "line 1 column 15: duplicate key (field new)"),
        (r#"{"new":1,"new":2}"#, "line 1 column 10: duplicate key (field new)"),
        (
            r#"{"cse_timeout":4294967296}"#,
            "line 1 column 16: the number is out of range for 32 bits (field cse_timeout)",
        ),
        (
            r#"{"cse_timeout":1.5}"#,
            "line 1 column 16: expected a whole number, found a fraction (field cse_timeout)",
        ),
        (
            r#"{"cse_timeout":01}"#,
            "line 1 column 16: a number that JSON does not know (field cse_timeout)",
        ),
        (
            r#"{"version":"v1"} x"#,
            "line 1 column 18: more text behind the end of the configuration",
        ),
        (r#"{"version":"v1",}"#, "line 1 column 17: expected a key, found something else"),
        ("[]", "line 1 column 1: expected an object, found an array"),
        (
            r#"{"custom_ca_certs":[null]}"#,
            "line 1 column 21: expected a string, found null (field custom_ca_certs)",
        ),
        (
            r#"{"vm_size":"\u0000"}"#,
            "line 1 column 13: a NUL character in a string (field vm_size)",
        ),
    ] {
        assert_eq!(refusal(text), said, "{text}");
    }
    let broken = NodeConfig::parse(b"{\"version\":\"\xff\"}").unwrap_err();
    assert_eq!(broken.to_string(), "line 1 column 13: not UTF-8");
    assert!(refusal("\u{feff}{}").contains("byte order mark"));
}

#[test]
fn test_e08_what_a_newer_control_plane_sends_is_noted_by_its_path() {
    let text = r#"{"version":"v1","later":[{"x":1}],"clusterConfig":{"vmType":"VM_TYPE_MOON","more":null,
        "load_balancer_config":{"load_balancer_sku":77}}}"#;
    let config = NodeConfig::parse(text.as_bytes()).unwrap();
    let said: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "later: unknown field, ignored",
            "cluster_config.vm_type: unknown value VM_TYPE_MOON, ignored",
            "cluster_config.more: unknown field, ignored",
            "cluster_config.load_balancer_config.load_balancer_sku: unknown value 77, without effect",
        ]
    );
    assert_eq!(config.configuration.cluster_config().vm_type, VmType::UNSPECIFIED);
    assert_eq!(environment(text).get("LOAD_BALANCER_SKU"), Some(""));
    assert_eq!(config.source(), text.as_bytes(), "nothing unknown is lost on the way to the node");
}

#[test]
fn huge_and_deep_input_is_refused_in_few_words() {
    let huge = vec![b' '; 50_000_000];
    assert_eq!(NodeConfig::parse(&huge), Err(ConfigError::TooLarge(50_000_000)));
    let deep = format!("{{\"new\":{}", "[".repeat(500_000));
    assert!(refusal(&deep).contains("nested deeper than 64"), "{}", refusal(&deep));
}

#[test]
fn numbers_are_read_as_numbers_and_as_texts_and_null_is_unset() {
    let config = read(
        r#"{"version":"v1","cse_timeout":"1200","vm_size":null,"cluster_config":{
        "cloud_provider_config":{"backoff_exponent":"1.5","rate_limit_qps":1e1,"backoff_retries":2.0,
        "backoff_jitter":"NaN"}}}"#,
    );
    let provider = config.cluster_config().cloud_provider_config();
    assert_eq!(config.cse_timeout, Some(1200));
    assert_eq!(provider.backoff_exponent, Some(1.5));
    assert_eq!(provider.rate_limit_qps, Some(10.0));
    assert_eq!(provider.backoff_retries, Some(2));
    assert!(provider.backoff_jitter.unwrap().is_nan());
    assert_eq!(config.vm_size, "");
}

#[test]
fn a_configuration_that_is_written_reads_the_same() {
    let config = read(
        r#"{"version":"v1","enable_ssh":false,"enabled_features":{"B":"2","A":"1"},
        "cluster_config":{"vm_type":"VM_TYPE_VMSS"},"kubelet_config":{},"message_of_the_day":"\"\\\u00e9\n"}"#,
    );
    let text = config.to_json();
    assert_eq!(read(&text), config);
    assert!(
        text.starts_with("{\n  \"version\": \"v1\",\n  \"cluster_config\": {\n    \"vm_type\"")
    );
    assert!(text.find("\"A\"").unwrap() < text.find("\"B\"").unwrap());
}

#[test]
fn test_e26_the_configuration_wins_and_what_bends_a_shell_is_not_inherited() {
    let made = environment(r#"{"version":"v1","cluster_config":{"location":"northeurope"}}"#);
    let inherited = [
        ("LOCATION", "zzz"),
        ("HTTP_PROXY", "http://p"),
        ("LD_PRELOAD", "x.so"),
        ("BASH_ENV", "x"),
        ("BASH_FUNC_ls%%", "() { :; }"),
        ("IFS", "x"),
        ("PATH", "/usr/bin:/opt/bin"),
    ];
    let all: BTreeMap<OsString, OsString> =
        made.over(inherited.map(|(name, value)| (name.into(), value.into())));
    let get = |name: &str| all.get(&OsString::from(name)).map(|value| value.to_str().unwrap());
    assert_eq!(get("LOCATION"), Some("northeurope"));
    assert_eq!(get("HTTP_PROXY"), Some("http://p"));
    assert_eq!(get("PATH"), Some("/usr/bin:/opt/bin:/usr/local/bin"));
    for name in ["LD_PRELOAD", "BASH_ENV", "BASH_FUNC_ls%%", "IFS"] {
        assert_eq!(get(name), None, "{name}");
    }
    for name in ["LD_PRELOAD", "BASH_ENV", "PATH", "LOCATION", "lower", "1A", "CUSTOM_CA_CERT_3"] {
        assert!(!is_feature(name), "{name}");
    }
    assert!(is_feature("ENABLE_PROVISIONING_HOTFIX"));
}

#[test]
fn there_are_164_variables_and_one_for_each_certificate() {
    assert_eq!(environment(r#"{"version":"v1"}"#).iter().count(), 164);
    let two = environment(r#"{"version":"v1","custom_ca_certs":["a\nb\r\n","c"]}"#);
    assert_eq!(two.iter().count(), 166);
    assert_eq!(two.get("CUSTOM_CA_CERT_0"), Some("ab"));
    assert_eq!(two.get("CUSTOM_CA_TRUST_COUNT"), Some("2"));
}

#[test]
fn test_e28_only_a_node_with_gpus_needs_the_component_list() {
    let plain = environment(r#"{"version":"v1","vm_size":"Standard_D4s_v5"}"#);
    assert_eq!(plain.get("GPU_DRIVER_VERSION"), Some(""));
    assert_eq!(plain.warnings().len(), 1);
    let gpu =
        r#"{"version":"v1","vm_size":"Standard_NC6s_v3","gpu_config":{"enable_nvidia":true}}"#;
    let refused = Environment::of(&read(gpu), &Host::default()).unwrap_err();
    assert!(refused.to_string().contains("failed to load GPU config"), "{refused}");
    let list = br#"{"GPUContainerImages":[{"downloadURL":"example.test/x/aks-gpu-cuda-lts:*",
        "gpuVersion":{"latestVersion":"1.2.3-9"}}]}"#;
    let host = Host { components: Components::parse(list), ..Host::default() };
    let made = Environment::of(&read(gpu), &host).unwrap();
    assert_eq!(made.get("GPU_DRIVER_VERSION"), Some("1.2.3"));
    assert_eq!(made.get("GPU_IMAGE_SHA"), Some("9"));
}

#[test]
fn test_e29_the_schema_follows_from_what_containerd_says() {
    let of = ContainerdSchema::of_version_output;
    let line = "containerd github.com/containerd/containerd/v2";
    assert_eq!(of("containerd containerd.io 1.7.29 abc"), Some(ContainerdSchema::A));
    assert_eq!(of(&format!("{line} v2.1.0-azure1 abc")), Some(ContainerdSchema::B));
    assert_eq!(of(""), None);
    assert_eq!(of("containerd x unknown"), None);
    let host = Host { containerd: ContainerdSchema::B, ..Host::default() };
    let made = Environment::of(&read(r#"{"version":"v1"}"#), &host).unwrap();
    let table: toml::Table = toml::from_str(&decoded(&made, "CONTAINERD_CONFIG_CONTENT")).unwrap();
    let runtime = &table["plugins"]["io.containerd.cri.v1.runtime"]["containerd"];
    assert_eq!(runtime["runtimes"]["runc"]["options"]["SystemdCgroup"], true.into());
    assert!(table["plugins"].get("io.containerd.grpc.v1.cri").is_none());
}

#[test]
fn test_e30_streaming_and_kata_together_are_valid() {
    let text = r#"{"version":"v1","enable_artifact_streaming":true,"is_kata":true,
        "network_config":{"network_plugin":"NETWORK_PLUGIN_KUBENET"}}"#;
    for containerd in [ContainerdSchema::A, ContainerdSchema::B] {
        let host = Host { containerd, ..Host::default() };
        let made = Environment::of(&read(text), &host).unwrap();
        let table: toml::Table =
            toml::from_str(&decoded(&made, "CONTAINERD_CONFIG_CONTENT")).unwrap();
        let plugins = table["proxy_plugins"].as_table().unwrap();
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["overlaybd", "tardev"]);
        let kata = &table["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"];
        assert!(kata.get("kata-cc").is_some());
    }
}

#[test]
fn a_proxy_that_a_shell_would_act_on_is_refused_without_being_shown() {
    let text = r#"{"version":"v1","http_proxy_config":{"https_proxy":"http://$(reboot)"}}"#;
    let refused = Environment::of(&read(text), &Host::default()).unwrap_err().to_string();
    assert!(refused.contains("http_proxy_config.https_proxy"), "{refused}");
    assert!(!refused.contains("reboot"), "{refused}");
}

#[test]
fn names_that_would_break_out_of_the_dns_configuration_are_refused() {
    let text = r#"{"version":"v1","local_dns_profile":{"enable_local_dns":true,
        "vnet_dns_overrides":{"a {\n}":{}}}}"#;
    assert!(Environment::of(&read(text), &Host::default()).is_err());
}

#[test]
fn the_file_of_kubelet_has_the_spelling_that_kubelet_knows() {
    let made = environment(
        r#"{"version":"v1","kubernetes_version":"1.35.1","kubelet_config":{
        "kubelet_config_file_config":{"streaming_connection_idle_timeout":"1h","event_record_qps":0,
        "eviction_hard":{"x":"<5%"},"authentication":{"webhook":{"cacheTtl":"2m"}}}}}"#,
    );
    assert_eq!(
        decoded(&made, "KUBELET_CONFIG_FILE_CONTENT"),
        "{\n    \"authentication\": {\n        \"webhook\": {\n            \"cacheTTL\": \"2m\"\n        \
         }\n    },\n    \"eventRecordQPS\": 0,\n    \"evictionHard\": {\n        \"x\": \
         \"\\u003c5%\"\n    }\n}"
    );
    let none = environment(r#"{"version":"v1","kubelet_config":{}}"#);
    assert_eq!(decoded(&none, "KUBELET_CONFIG_FILE_CONTENT"), "{}");
}

#[test]
fn test_e37_secrets_are_in_no_debug_text_and_in_no_error() {
    let config = NodeConfig::parse(SECRETS.as_bytes()).unwrap();
    let made = Environment::of(&config.configuration, &Host::default()).unwrap();
    let shown = format!("{config:?} {made:?}");
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(config.configuration.secrets(), ["hush-one", "hush-two", "hush-three", "hush-four"]);
    assert_eq!(made.get("TLS_BOOTSTRAP_TOKEN"), Some("hush-two"));
    for (at, _) in SECRETS.match_indices("hush") {
        for end in at..at + 8 {
            let said = refusal(&SECRETS[..end]);
            assert!(!said.contains("hush"), "{said}");
        }
    }
    let misplaced = refusal(r#"{"version":"v1","enable_ssh":"hush-six"}"#);
    assert!(!misplaced.contains("hush"), "{misplaced}");
}

#[test]
fn the_required_fields_that_are_missing_are_named() {
    let text = r#"{"version":"v1","cluster_config":{"location":"x","resource_group":"g"}}"#;
    assert_eq!(
        read(text).missing_required(),
        [
            "auth_config.subscription_id",
            "cluster_config.cluster_network_config.vnet_name",
            "cluster_config.cluster_network_config.route_table",
            "api_server_config.api_server_name",
        ]
    );
}

#[test]
fn the_page_about_the_configuration_is_not_stale() {
    use bringup_contract::node_config::{INTRODUCTION, PAGE};
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/node-config.md");
    let page = std::fs::read_to_string(path).unwrap();
    let again = "cargo run -p bringup-contract --example node_config_page > docs/node-config.md";
    assert!(page == format!("{INTRODUCTION}{PAGE}"), "docs/node-config.md is stale: {again}");
}
