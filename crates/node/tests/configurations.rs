//! Attempts with a node configuration. The numbers are those of the acceptance tests.

#![allow(clippy::unwrap_used, reason = "what a test cannot read fails it")]

mod common;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Ended, Machine, until};

/// Records the environment of the scripts, and succeeds.
const RECORD: &str = "env -0 >$R/seen; echo '{\"ExitCode\":\"0\",\"Output\":\"\"}' >$L/aks/provision.json; touch $C/provision.complete";

const PLAIN: &str = r#"{"version":"v1","cluster_config":{"location":"eastus"}}"#;

/// The environment of the scripts.
fn seen(machine: &Machine) -> BTreeMap<String, String> {
    let text = machine.read("/seen");
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn decoded(text: &str) -> String {
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

/// The error in the result.
fn error(machine: &Machine) -> String {
    machine.result()["Error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn test_01_every_family_of_variables_reaches_the_scripts() {
    let machine = Machine::new();
    let everything = include_str!("data/everything.json");
    assert_eq!(machine.provision_configured(everything, RECORD, &[]).code, 0);
    let seen = seen(&machine);
    for (name, value) in [
        ("PROVISION_OUTPUT", "/var/log/azure/cluster-provision-cse-output.log"),
        ("ADMINUSER", "ada"),
        ("KUBERNETES_VERSION", "1.33.2"),
        ("KUBE_BINARY_URL", "https://packages.example/kubernetes-node.tar.gz"),
        ("API_SERVER_NAME", "cluster.example.io"),
        ("LOCATION", "eastus"),
        ("TARGET_ENVIRONMENT", "AzurePublicCloud"),
        ("VM_TYPE", "vmss"),
        ("PRIMARY_SCALE_SET", "pool-vmss"),
        ("LOAD_BALANCER_SKU", "standard"),
        ("MAXIMUM_LOADBALANCER_RULE_COUNT", "148"),
        ("CLOUDPROVIDER_BACKOFF", "true"),
        ("CLOUDPROVIDER_BACKOFF_EXPONENT", "1.5"),
        ("CLOUDPROVIDER_BACKOFF_RETRIES", "3"),
        ("CLOUDPROVIDER_RATELIMIT_QPS", "10"),
        ("NETWORK_PLUGIN", "kubenet"),
        ("NETWORK_POLICY", "none"),
        ("ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE", "true"),
        ("KUBELET_FLAGS", "--cloud-provider=external --max-pods=110"),
        ("KUBELET_NODE_LABELS", "kind=agent,pool=one"),
        ("HAS_KUBELET_DISK_TYPE", "true"),
        ("ENABLE_SECURE_TLS_BOOTSTRAPPING", "true"),
        ("TLS_BOOTSTRAP_TOKEN", "the token of a test"),
        ("USE_MANAGED_IDENTITY_EXTENSION", "true"),
        ("SHOULD_CONFIG_SWAP_FILE", "true"),
        ("SWAP_FILE_SIZE_MB", "1500"),
        ("THP_DEFRAG", "defer"),
        ("CONTAINERD_ULIMITS", "[Service] LimitNOFILE=1048576 "),
        ("HTTP_PROXY_URLS", "http://proxy.example:3128"),
        ("NO_PROXY_URLS", "localhost,10.0.0.0/8"),
        ("HTTP_PROXY_TRUSTED_CA", "onetwo"),
        ("CUSTOM_CA_TRUST_COUNT", "2"),
        ("CUSTOM_CA_CERT_0", "firstcertificate"),
        ("CUSTOM_CA_CERT_1", "second"),
        ("SHOULD_ENABLE_LOCALDNS", "true"),
        ("LOCALDNS_CPU_LIMIT", "50.0%"),
        ("HAS_CUSTOM_SEARCH_DOMAIN", "true"),
        ("CUSTOM_SEARCH_REALM_PASSWORD", "a realm password"),
        ("GPU_NODE", "false"),
        ("CONFIG_GPU_DRIVER_IF_NEEDED", "true"),
        ("ENABLE_IMDS_RESTRICTION", "true"),
        ("DISABLE_SSH", "true"),
        ("CSE_TIMEOUT", "1800"),
        ("NETWORK_ISOLATED_CLUSTER_TEST_MODE", "false"),
    ] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
    let kubelet: serde_json::Value =
        serde_json::from_str(&decoded(&seen["KUBELET_CONFIG_FILE_CONTENT"])).unwrap();
    assert_eq!(kubelet["maxPods"], 110);
    assert!(decoded(&seen["SYSCTL_CONTENT"]).contains("net.core.somaxconn=16384"));
    assert!(decoded(&seen["LOCALDNS_GENERATED_COREFILE"]).contains("forward"));
    assert!(decoded(&seen["KUBENET_TEMPLATE"]).contains("PodCIDRRanges"));
    assert!(decoded(&seen["CONTAINERD_CONFIG_CONTENT"]).contains("registry.example/pause:3.9"));
}

#[test]
fn test_01_nothing_is_left_out_of_what_the_contract_makes() {
    use bringup_contract::node_config::{Environment, Host, NodeConfig};
    let machine = Machine::new();
    let everything = include_str!("data/everything.json");
    assert_eq!(machine.provision_configured(everything, RECORD, &[]).code, 0);
    let seen = seen(&machine);
    let config = NodeConfig::parse(everything.as_bytes()).unwrap().configuration;
    let made = Environment::of(&config, &Host::default()).unwrap();
    assert!(made.iter().count() > 164);
    for (name, value) in made.iter() {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn test_05_a_missing_configuration_is_240_and_the_waiter_says_so() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["provision", "--provision-config", "/nowhere/x.json"]).code, 240);
    assert!(machine.has("provision.complete") && machine.has("provision.failed"));
    let ended = machine.wait();
    assert_eq!(ended.code, 240);
    assert_eq!(
        ended.document()["Error"],
        "open provision file /nowhere/x.json: no such file or directory"
    );
    assert_eq!(ended.summary()["name"], "ERR_AKS_NODE_CONTROLLER_ERROR");
}

#[test]
fn test_06_versions_that_are_not_known_are_refused_after_what_cannot_be_parsed() {
    for (text, said) in [
        (r#"{"version":"v2"}"#, "unsupported version: v2"),
        (r#"{"vm_size":"x"}"#, "unsupported version: "),
        ("", "line 1 column 1: unexpected end of input"),
        (r#"{"version":"v2","enable_ssh":1}"#, "line 1 column 30: expected true or false"),
    ] {
        let machine = Machine::new();
        assert_eq!(machine.provision_configured(text, "touch $R/ran", &[]).code, 240);
        assert!(error(&machine).contains(said), "{}", error(&machine));
        assert!(said.starts_with("unsupported") || !error(&machine).contains("unsupported"));
        assert!(!machine.at("/ran").exists());
    }
}

#[test]
fn test_06_version_0_is_taken_and_called_old_unless_it_is_to_be_refused() {
    let machine = Machine::new();
    let old = r#"{"version":"v0"}"#;
    assert_eq!(machine.provision_configured(old, RECORD, &[]).code, 0);
    assert!(machine.log().contains("version: v0 is deprecated"), "{}", machine.log());
    let machine = Machine::new();
    assert_eq!(machine.provision_configured(old, RECORD, &["--reject-v0"]).code, 240);
    assert_eq!(error(&machine), "unsupported version: v0");
    let machine = Machine::new();
    machine.file("/etc/bringup-node/config.toml", "reject-v0 = true\n");
    assert_eq!(machine.provision_configured(old, RECORD, &[]).code, 240);
}

#[test]
fn test_07_a_configuration_that_is_half_understood_is_refused_with_its_place() {
    for (text, said) in [
        (
            "{\"version\":\"v1\",\n  \"cluster_config\": {\"location\": \"eastus\"},\n  \"enable_unattended_upgrade\": \"yes\"}",
            "line 3 column 32: expected true or false, found a string (field enable_unattended_upgrade)",
        ),
        (
            r#"{"version":"v1","cluster_config":{"location":"east"#,
            "line 1 column 51: unexpected end of input (field cluster_config.location)",
        ),
        (
            r#"{"version":"v1","vm_size":"a","vmSize":"b"}"#,
            "line 1 column 31: duplicate key (field vm_size)",
        ),
        (r#"{"version":"v1","cse_timeout":5000000000}"#, "out of range"),
    ] {
        let machine = Machine::new();
        assert_eq!(machine.provision_configured(text, "touch $R/ran", &[]).code, 240);
        let config = machine.at("/opt/azure/containers/aks-node-controller-config.json");
        let error = error(&machine);
        assert!(error.starts_with(&format!("config {}: ", config.display())), "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!machine.at("/ran").exists());
        assert_eq!(machine.wait().code, 240);
    }
}

#[test]
fn test_08_what_is_not_known_is_tolerated_logged_and_reported_by_its_path() {
    let machine = Machine::new();
    let text = r#"{"version":"v1","brand_new_field":{"a":[1]},"cluster_config":{"vm_type":"VM_TYPE_NEW"},
        "network_config":{"network_policy":99}}"#;
    assert_eq!(machine.provision_configured(text, RECORD, &[]).code, 0);
    let report = machine.report();
    let reported: Vec<&str> =
        report["reported"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    for said in [
        "configuration: brand_new_field: unknown field, ignored",
        "configuration: cluster_config.vm_type: unknown value VM_TYPE_NEW, ignored",
        "configuration: network_config.network_policy: unknown value 99, without effect",
        "configuration: auth_config.subscription_id: required, and empty",
    ] {
        assert!(reported.contains(&said), "{said}: {reported:?}");
        assert!(machine.log().contains(said), "{said}");
    }
    assert_eq!(seen(&machine)["VM_TYPE"], "");
    let strict = machine.provision_configured(text, RECORD, &["--strict-required", "--dry-run"]);
    assert_eq!(strict.code, 240);
    assert!(strict.err.contains("required fields are empty: auth_config.subscription_id, "));
}

#[test]
fn test_26_the_configuration_wins_over_what_is_inherited_and_over_the_features() {
    let machine = Machine::new();
    machine.start_script(RECORD);
    machine.configuration(PLAIN);
    machine.file(
        "/opt/azure/containers/enabled_features.sh",
        "LOCATION=feature\nENABLE_X=yes\nLD_PRELOAD=/x.so\nBASH_ENV=/x\nPATH=/evil\n",
    );
    let mut command = machine.command(&["launch", "--hostname-timeout=10ms"]);
    let inherited = [
        ("LOCATION", "zzz"),
        ("VM_TYPE", "zzz"),
        ("LD_PRELOAD", ""),
        ("BASH_ENV", "/x"),
        ("IFS", "x"),
        ("HTTP_PROXY", "http://p.example:1"),
    ];
    assert_eq!(Ended::of(&command.envs(inherited).output().unwrap()).code, 0);
    let seen = seen(&machine);
    assert_eq!(seen["LOCATION"], "eastus");
    assert_eq!(seen["VM_TYPE"], "");
    assert_eq!(seen["ENABLE_X"], "yes");
    assert_eq!(seen["HTTP_PROXY"], "http://p.example:1");
    assert_eq!(seen["PATH"], "/usr/bin:/bin:/usr/local/bin:/opt/bin");
    for name in ["LD_PRELOAD", "BASH_ENV"] {
        assert!(!seen.contains_key(name), "{name}");
        assert!(machine.log().contains(&format!("{name} is not handed on")));
    }
    assert!(machine.log().contains("the feature file may not set LOCATION"));
}

#[test]
fn test_28_only_a_node_with_gpus_needs_the_component_list() {
    let machine = Machine::new();
    let plain = r#"{"version":"v1","vm_size":"Standard_D4s_v5"}"#;
    assert_eq!(machine.provision_configured(plain, RECORD, &[]).code, 0);
    let gpu =
        r#"{"version":"v1","vm_size":"Standard_NC6s_v3","gpu_config":{"enable_nvidia":true}}"#;
    let machine = Machine::new();
    assert_eq!(machine.provision_configured(gpu, RECORD, &[]).code, 240);
    assert_eq!(
        error(&machine),
        "failed to load GPU config: read /opt/azure/components.json: no such file or directory (variable GPU_DRIVER_VERSION)"
    );
    machine.file("/opt/azure/components.json", "{");
    assert_eq!(machine.provision_configured(gpu, RECORD, &[]).code, 240);
    assert!(error(&machine).starts_with("failed to load GPU config: parse /opt/azure/components"));
    machine.file(
        "/opt/azure/components.json",
        r#"{"GPUContainerImages":[{"downloadURL":"x.example/aks-gpu-cuda-lts:*","gpuVersion":{"latestVersion":"5.6.7-8"}}]}"#,
    );
    assert_eq!(machine.provision_configured(gpu, RECORD, &[]).code, 0);
    let seen = seen(&machine);
    assert_eq!((seen["GPU_DRIVER_VERSION"].as_str(), seen["GPU_NODE"].as_str()), ("5.6.7", "true"));
}

/// The containerd configuration that the scripts received.
fn containerd(machine: &Machine) -> toml::Table {
    toml::from_str(&decoded(&seen(machine)["CONTAINERD_CONFIG_CONTENT"])).unwrap()
}

#[test]
fn test_29_a_containerd_that_hangs_is_ended_and_taken_for_an_old_one() {
    let machine = Machine::new();
    let root = machine.at("/").display().to_string();
    machine.file(
        "/usr/bin/containerd",
        // A hanging stub makes the time limit end.
        &format!(
            "#!/bin/bash\ntail -f /dev/null & echo $! >'{root}/hangs'; {}; wait\n",
            machine.time_passes(2_000)
        ),
    );
    assert_eq!(machine.provision_configured(PLAIN, RECORD, &[]).code, 0);
    assert!(containerd(&machine)["plugins"].get("io.containerd.grpc.v1.cri").is_some());
    assert!(machine.log().contains("containerd said nothing for 2000 ms and was ended"));
    let hung = machine.read("/hangs");
    let cwd = format!("/proc/{}/cwd", hung.trim());
    until("what containerd started ends", || !std::path::Path::new(&cwd).exists());
}

#[test]
fn test_29_the_schema_follows_containerd_else_its_package() {
    let machine = Machine::new();
    let said = "containerd github.com/containerd/containerd/v2 v2.0.4-azl abc";
    machine.file("/usr/bin/containerd", &format!("#!/bin/bash\necho {said}\n"));
    assert_eq!(machine.provision_configured(PLAIN, RECORD, &[]).code, 0);
    assert!(containerd(&machine)["plugins"].get("io.containerd.cri.v1.runtime").is_some());

    let machine = Machine::new();
    machine.file(
        "/var/lib/dpkg/status",
        "Package: moby-containerd\nStatus: install ok installed\nVersion: 2.1.0-1\n",
    );
    assert_eq!(machine.provision_configured(PLAIN, RECORD, &[]).code, 0);
    assert!(containerd(&machine)["plugins"].get("io.containerd.cri.v1.runtime").is_some());
    assert!(machine.log().contains("its configuration is written by the package"));
}

#[test]
fn test_30_streaming_and_kata_together_are_a_configuration_that_parses() {
    let machine = Machine::new();
    let text = r#"{"version":"v1","enable_artifact_streaming":true,"is_kata":true}"#;
    assert_eq!(machine.provision_configured(text, RECORD, &[]).code, 0);
    let plugins = containerd(&machine)["proxy_plugins"].as_table().unwrap().clone();
    assert_eq!(plugins.keys().collect::<Vec<_>>(), ["overlaybd", "tardev"]);
}

#[test]
fn a_registry_in_the_configuration_needs_oras_before_anything_runs() {
    for text in [
        r#"{"version":"v1","bootstrap_profile_container_registry_server":"reg.example.io"}"#,
        r#"{"version":"v1","kube_binary_config":{"kube_binary_url":"reg.example.io/oss/node:v1.33"}}"#,
    ] {
        let machine = Machine::new();
        machine.remove("/usr/bin/oras");
        assert_eq!(machine.provision_configured(text, "touch $R/ran", &[]).code, 232);
        assert!(error(&machine).starts_with("ERR_ORAS_BINARY_NOT_FOUND: "));
        assert!(!machine.at("/ran").exists());
    }
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    assert_eq!(machine.provision_configured(PLAIN, RECORD, &[]).code, 0);
}

#[test]
fn a_value_that_a_shell_would_act_on_names_its_variable() {
    let machine = Machine::new();
    let text = r#"{"version":"v1","http_proxy_config":{"http_proxy":"http://$(reboot)"}}"#;
    assert_eq!(machine.provision_configured(text, "touch $R/ran", &[]).code, 240);
    assert!(error(&machine).ends_with("(variable PROXY_VARS)"), "{}", error(&machine));
    assert!(!error(&machine).contains("reboot") && !machine.at("/ran").exists());
}

#[test]
fn the_base_of_a_sovereign_registry_can_be_given() {
    let machine = Machine::new();
    let flag = "--mcr-repository-base=mcr.example/";
    assert_eq!(machine.provision_configured(PLAIN, RECORD, &[flag]).code, 0);
    assert_eq!(seen(&machine)["MCR_REPOSITORY_BASE"], "mcr.example/");
}

#[test]
fn a_dry_run_with_a_configuration_logs_the_command_and_writes_nothing_else() {
    let machine = Machine::new();
    assert_eq!(machine.provision_configured(PLAIN, "touch $R/ran", &["--dry-run"]).code, 0);
    assert!(machine.log().contains("\"dry-run\"") && machine.log().contains("provision_start.sh"));
    for path in ["/ran", "/var/lib/bringup-node", "/run", "/var/log/bringup-node"] {
        assert!(!machine.at(path).exists(), "{path}");
    }
}

#[test]
fn of_two_ways_to_say_it_the_command_is_run_and_an_event_tells_how_they_differ() {
    let machine = Machine::new();
    machine.configuration(r#"{"version":"v1","cluster_config":{"location":"eastus"},"bootstrapping_config":{"tls_bootstrapping_token":"the token of a test"}}"#);
    machine.script("LOCATION=westus TLS_BOOTSTRAP_TOKEN='the token of a test' MORE=1 bash -c 'touch $0/by-command' $R; echo the token of a test; exit 7");
    assert_eq!(machine.run(&["launch", "--hostname-timeout=10ms"]).code, 7);
    assert!(machine.at("/by-command").exists());
    let events = machine.events();
    let compared = events
        .iter()
        .find(|event| event["TaskName"] == "AKS.AKSNodeController.CompareEnvs")
        .unwrap();
    let message = compared["Message"].as_str().unwrap();
    assert!(message.contains("different: LOCATION;"), "{message}");
    assert!(message.contains("only in the command: C L MORE R"), "{message}");
    assert!(!message.contains("westus") && !message.contains("SKIP_WAAGENT_HOLD"), "{message}");
    assert_eq!(machine.result()["Output"], "***\n");
}
