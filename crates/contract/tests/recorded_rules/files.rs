//! Checks the files inside variables against their recorded descriptions.

use std::collections::BTreeMap;

use bringup_contract::node_config::ContainerdSchema;
use serde_json::{Map, Value};

use super::rules::Config;

/// kubelet's file: `contract` names the fields, `text` is our result.
pub(crate) fn kubelet_is_right(contract: &Value, config: Config<'_>, text: &str) -> bool {
    let path = "kubelet_config.kubelet_config_file_config";
    let mut file = config.at(path).cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if config.version_is_at_least(34) {
        file.as_object_mut().unwrap().remove("streaming_connection_idle_timeout");
    }
    let wanted = with_kubelet_names(contract, "KubeletConfigFileConfig", &file);
    serde_json::from_str::<Value>(text).is_ok_and(|found| found == wanted)
}

/// The value with JSON names, and without unset fields.
fn with_kubelet_names(contract: &Value, message: &str, value: &Value) -> Value {
    let messages = contract["messages"].as_array().unwrap();
    let listed = messages.iter().find(|listed| listed["message"] == message).unwrap();
    let mut members = Map::new();
    for field in listed["fields"].as_array().unwrap() {
        let name = field["name"].as_str().unwrap();
        let Some(value) = value.get(name) else { continue };
        let unset = match value {
            Value::Array(all) => all.is_empty(),
            Value::Object(all) => all.is_empty() && field["label"] == "map",
            Value::String(text) => text.is_empty() && field["label"] == "singular",
            Value::Bool(truth) => !truth && field["label"] == "singular",
            Value::Number(number) => number.as_i64() == Some(0) && field["label"] == "singular",
            Value::Null => true,
        };
        if unset {
            continue;
        }
        let written = field["kind"] == "message";
        let value = if written {
            with_kubelet_names(contract, field["type"].as_str().unwrap(), value)
        } else {
            value.clone()
        };
        members.insert(kubelet_name(name, &field["json_name"]), value);
    }
    Value::Object(members)
}

/// kubelet's spelling, even if upstream uses another one.
fn kubelet_name(name: &str, recorded: &Value) -> String {
    match (name, recorded.as_str()) {
        ("cache_ttl", _) => "cacheTTL".to_owned(),
        ("cache_authorized_ttl", _) => "cacheAuthorizedTTL".to_owned(),
        ("cache_unauthorized_ttl", _) => "cacheUnauthorizedTTL".to_owned(),
        (_, Some(recorded)) => recorded.to_owned(),
        (_, None) => {
            let mut parts = name.split('_');
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |whole, part| whole + &part[..1].to_uppercase() + &part[1..])
        }
    }
}

/// Kernel parameters, according to the tables in the record.
pub(crate) fn sysctl_is_right(map: &Value, config: Config<'_>, text: &str) -> bool {
    let rules = &map["sysctl"];
    let mut wanted: BTreeMap<String, String> = BTreeMap::new();
    for table in ["always", "default_when_unset"] {
        for (key, value) in rules[table].as_object().unwrap() {
            wanted.insert(key.clone(), value.as_str().unwrap().to_owned());
        }
    }
    let field = |name: &str| config.at(&format!("custom_linux_os_config.sysctl_config.{name}"));
    for key in rules["default_when_unset"].as_object().unwrap().keys() {
        let given = field(&key.replace('.', "_"));
        wanted.extend(given.map(|value| (key.clone(), value.to_string())));
    }
    for (name, key) in rules["only_when_set"].as_object().unwrap() {
        let key = key.as_str().unwrap().split(' ').next().unwrap().to_owned();
        let shown = |value: &Value| match value {
            Value::Bool(truth) => u8::from(*truth).to_string(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        wanted.extend(field(name).map(|value| (key, shown(value))));
    }
    let range = field("net_ipv4_ip_local_port_range").and_then(Value::as_str).unwrap_or_default();
    let ends: Vec<Option<i64>> = range.split_whitespace().map(|end| end.parse().ok()).collect();
    if matches!(ends[..], [Some(start), Some(end)] if 0 < start && start < end && end > 65_330) {
        wanted.insert("net.ipv4.ip_local_reserved_ports".to_owned(), "65330".to_owned());
    }
    let wanted: Vec<String> =
        wanted.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    wanted.concat() == text
}

/// containerd's file, statement by statement; returns the differences.
pub(crate) fn containerd_faults(
    config: Config<'_>,
    schema: ContainerdSchema,
    may_have_gpu: bool,
    text: &str,
) -> Vec<&'static str> {
    let Ok(file) = toml::from_str::<toml::Table>(text) else { return vec!["it is not TOML"] };
    let file = toml::Value::Table(file);
    let at = |path: &[&str]| {
        path.iter().try_fold(&file, |value, name| value.get(name)).and_then(toml::Value::as_str)
    };
    let is = |path: &[&str], wanted: &str| at(path) == Some(wanted);
    let truth = |path: &[&str]| {
        let found = path.iter().try_fold(&file, |value, name| value.get(name));
        found.and_then(toml::Value::as_bool).unwrap_or_default()
    };
    let old = "io.containerd.grpc.v1.cri";
    let (images, runtime, pause): (_, _, &[&str]) = match schema {
        ContainerdSchema::A => (old, old, &["sandbox_image"]),
        ContainerdSchema::B => (
            "io.containerd.cri.v1.images",
            "io.containerd.cri.v1.runtime",
            &["pinned_images", "sandbox"],
        ),
    };
    let gpu = may_have_gpu && config.truth("gpu_config.enable_nvidia");
    let name = if gpu { "nvidia-container-runtime" } else { "runc" };
    let runtimes = ["plugins", runtime, "containerd", "runtimes"];
    let options = |of: &'static str| [&runtimes[..], &[of, "options"]].concat();
    let snapshots: &[&str] = match schema {
        ContainerdSchema::A => &["plugins", old, "containerd"],
        ContainerdSchema::B => &["plugins", images],
    };
    let systemd = [options(name), vec!["SystemdCgroup"]].concat();
    let program = format!("/usr/bin/{name}");
    let streams = config.truth("enable_artifact_streaming");
    let kata = config.truth("is_kata");
    let snapshotter = at(&[snapshots, &["snapshotter"]].concat());
    let directory = config.text("kubelet_config.container_data_dir");
    let image = config.text("kube_binary_config.pod_infra_container_image_url");
    let statements = [
        ("version", file["version"].as_integer() == Some(2)),
        ("oom_score", file["oom_score"].as_integer() == Some(-999)),
        ("root", at(&["root"]).unwrap_or_default() == directory),
        ("metrics", is(&["metrics", "address"], "0.0.0.0:10257")),
        ("the pause image", is(&[&["plugins", images], pause].concat(), image)),
        (
            "enable_cdi",
            truth(&["plugins", old, "enable_cdi"])
                == (may_have_gpu && schema == ContainerdSchema::A),
        ),
        (
            "config_path",
            is(&["plugins", images, "registry", "config_path"], "/etc/containerd/certs.d")
                == config.version_is_at_least(22),
        ),
        ("default runtime", is(&["plugins", runtime, "containerd", "default_runtime_name"], name)),
        (
            "programs",
            [name, "untrusted"].iter().all(|of| {
                is(&[&runtimes[..], &[of, "runtime_type"]].concat(), "io.containerd.runc.v2")
                    && is(&[&runtimes[..], &[of, "options", "BinaryName"]].concat(), &program)
            }),
        ),
        (
            "SystemdCgroup",
            truth(&systemd) == (schema == ContainerdSchema::B || config.truth("needs_cgroupv2")),
        ),
        ("network", at(&["plugins", runtime, "cni", "bin_dir"]).is_some() == config.is_kubenet()),
        (
            "overlaybd",
            file.get("proxy_plugins").and_then(|all| all.get("overlaybd")).is_some() == streams,
        ),
        ("tardev", file.get("proxy_plugins").and_then(|all| all.get("tardev")).is_some() == kata),
        (
            "snapshotter",
            match (streams, kata) {
                (true, _) => snapshotter == Some("overlaybd"),
                (false, true) => snapshotter == Some("erofs"),
                (false, false) => snapshotter.is_none(),
            },
        ),
        (
            "kata runtimes under the old name",
            at(&["plugins", old, "containerd", "runtimes", "kata", "runtime_type"]).is_some()
                == kata,
        ),
    ];
    statements.into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what).collect()
}

/// The file of the DNS cache: its blocks and their contents.
pub(crate) fn corefile_is_right(config: Config<'_>, hosts: bool, text: &str) -> bool {
    if !config.truth("local_dns_profile.enable_local_dns") {
        return text.is_empty();
    }
    let mut wanted = vec!["health-check.localdns.local:53".to_owned()];
    let given = config.text("cluster_config.cluster_network_config.core_dns_service_ip");
    let cluster = if given.is_empty() { "10.0.0.10" } else { given };
    let blocks = blocks(text);
    let mut right = true;
    for (of, listener) in [("vnet", "169.254.10.10"), ("kube", "169.254.10.11")] {
        let path = format!("local_dns_profile.{of}_dns_overrides");
        let all = config.at(&path).and_then(Value::as_object);
        let sorted: BTreeMap<&String, &Value> = all.into_iter().flatten().collect();
        for (domain, settings) in sorted {
            let Some((head, words)) = blocks.get(wanted.len()) else { return false };
            wanted.push(format!("{domain}:53"));
            let root = domain.as_str() == ".";
            let to_cluster = domain.ends_with("cluster.local")
                || settings["forward_destination"] == "ClusterCoreDNS" && !(root && of == "vnet");
            let upstream = if to_cluster { cluster } else { "168.63.129.16" };
            let has = |phrase: &str| words.contains(phrase);
            right &= *head == format!("{domain}:53")
                && has(&format!(" bind {listener} "))
                && has(&format!(" forward . {upstream} "))
                && has(" hosts /etc/localdns/hosts ") == (root && hosts)
                && has(" force_tcp ") == (settings["protocol"] == "ForceTCP")
                && has(" prefer_udp ") == (settings["protocol"] == "PreferUDP")
                && has(" policy round_robin ") == (settings["forward_policy"] == "RoundRobin")
                && has(" errors ") == (settings["query_logging"] == "Error")
                && has(" nsid localdns-pod ") == (of == "kube")
                && has(" template ANY ANY reddog.microsoft.com ") == root;
        }
    }
    right && blocks.iter().map(|(head, _)| head).eq(&wanted)
}

/// The blocks at the outermost level: the head, and the words inside, separated by one space.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match (line.starts_with(' '), line.strip_suffix(" {"), blocks.last_mut()) {
            (false, Some(head), _) => blocks.push((head.to_owned(), " ".to_owned())),
            (_, _, Some((_, inside))) => inside.extend([words.as_str(), " "]),
            (_, _, None) => {}
        }
    }
    blocks
}

/// The words of a text, for a comparison that ignores white space.
pub(crate) fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
