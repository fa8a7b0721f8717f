//! The configuration of a join: refused values, hidden secrets, and the resulting cloud-config.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::join_config::{
    AgentArtifact, CONFIG_PATH, JoinConfig, JoinConfigError, JoinExit, LIMIT, Step,
    join_custom_data,
};
use serde_json::{Value, json};

const TOKEN: &str = "abcdef.0123456789abcdef";

fn valid() -> Value {
    let artifact = |version: &str, name: &str| json!({"version": version, "url": format!("https://dl.example/{name}"), "sha256": "ab".repeat(32)});
    json!({
        "cluster": {
            "server": "https://api.example.io:443",
            "certificateAuthorityData": STANDARD.encode("-----BEGIN CERTIFICATE-----\nx\n"),
            "version": "1.34.4"
        },
        "token": TOKEN,
        "node": {
            "name": "gpu-1", "ip": "10.0.0.5", "providerId": "azure-flex:///subscriptions/s/x",
            "maxPods": 110, "labels": {"a.b/c": "d", "kubernetes.io/role": "x"},
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
        },
        "kubernetesVersion": "1.34.2",
        "artifacts": {
            "containerd": artifact("2.1.4", "containerd.tar.gz"), "runc": artifact("1.3.0", "runc"),
            "kubeadm": artifact("1.34.2", "kubeadm"), "kubelet": artifact("v1.34.2", "kubelet"),
            "kubectl": artifact("1.34.2", "kubectl")
        },
        "limits": {"join": 300}
    })
}

fn parsed(value: &Value) -> Result<JoinConfig, JoinConfigError> {
    JoinConfig::parse(value.to_string().as_bytes())
}

/// The error when one value of a valid configuration is replaced.
fn said(pointer: &str, value: Value) -> String {
    let mut config = valid();
    *config.pointer_mut(pointer).unwrap() = value;
    parsed(&config).unwrap_err().to_string()
}

#[test]
fn a_configuration_is_read_as_it_is_written() {
    let config = parsed(&valid()).unwrap();
    let again = serde_json::to_vec(&config).unwrap();
    assert_eq!(JoinConfig::parse(&again).unwrap(), config);
    assert_eq!(config.limit(Step::Join), 300);
    assert_eq!(config.limit(Step::Docker), Step::Docker.usual_limit());
}

#[test]
fn every_mistake_is_told_by_the_name_of_its_field() {
    for (pointer, value, field) in [
        ("/cluster/server", json!("http://api.example.io"), "cluster.server"),
        ("/cluster/server", json!("https://api/x?y"), "cluster.server"),
        (
            "/cluster/certificateAuthorityData",
            json!("bm90aGluZw=="),
            "cluster.certificateAuthorityData",
        ),
        ("/token", json!("abc"), "token"),
        ("/node/name", json!("Upper_Case"), "node.name"),
        ("/node/ip", json!("10.0.0"), "node.ip"),
        ("/node/providerId", json!("nothing"), "node.providerId"),
        ("/node/maxPods", json!(5), "node.maxPods"),
        ("/node/labels", json!({"a b": "c"}), "node.labels[a b]"),
        ("/node/labels", json!({"a": "b,c=d"}), "node.labels[a]"),
        ("/node/taints/0/key", json!("x y"), "node.taints[0].key"),
        ("/kubernetesVersion", json!("latest"), "kubernetesVersion"),
        ("/artifacts/containerd/version", json!("1.7.27"), "artifacts.containerd.version"),
        ("/artifacts/kubelet/version", json!("1.33.0"), "artifacts.kubelet.version"),
        ("/artifacts/runc/url", json!("file:///etc/passwd"), "artifacts.runc.url"),
        ("/artifacts/runc/url", json!("https://x/$(id)'"), "artifacts.runc.url"),
        ("/artifacts/runc/sha256", json!("12"), "artifacts.runc.sha256"),
        ("/limits/join", json!(0), "limits.join"),
    ] {
        let said = said(pointer, value);
        assert!(said.starts_with(&format!("{field}: ")), "{pointer}: {said}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let mut config = valid();
    config["node"]["maxPods"] = 1.into();
    config["token"] = "x".into();
    let said = parsed(&config).unwrap_err().to_string();
    assert!(said.contains("node.maxPods: ") && said.contains("token: "), "{said}");
}

#[test]
fn test_36_a_kubelet_that_does_not_go_with_the_control_plane_is_refused() {
    let with = |kubelet: &str, plane: &str| {
        let text = valid().to_string().replace("1.34.2", kubelet).replace("1.34.4", plane);
        JoinConfig::parse(text.as_bytes()).map_err(|error| error.to_string())
    };
    for plane in ["1.34.0", "1.35.1", "1.37.9"] {
        with("1.34.2", plane).unwrap();
    }
    for plane in ["1.33.9", "1.38.0", "2.34.0"] {
        let said = with("1.34.2", plane).unwrap_err();
        assert!(said.contains("kubernetesVersion: does not go with"), "{said}");
    }
}

#[test]
fn what_is_not_of_this_form_is_told_by_place_and_no_value_is_quoted() {
    let mut config = valid();
    config["token"] = json!([TOKEN]);
    let said = parsed(&config).unwrap_err().to_string();
    assert!(said.starts_with("line 1 column ") && !said.contains("0123456789"), "{said}");
    let mut config = valid();
    config["node"]["maxpods"] = 7.into();
    assert!(parsed(&config).unwrap_err().to_string().contains("unknown field `maxpods`"));
    let mut config = valid();
    config["node"].as_object_mut().unwrap().remove("name");
    assert!(parsed(&config).unwrap_err().to_string().contains("missing field `name`"));
    assert!(JoinConfig::parse(b"").unwrap_err().to_string().contains("it ends too early"));
}

#[test]
fn the_token_is_not_shown() {
    let config = parsed(&valid()).unwrap();
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
    assert_eq!(config.secrets(), [TOKEN, "0123456789abcdef"]);
}

fn agent() -> AgentArtifact {
    AgentArtifact { url: "https://dl.example/it's".to_owned(), sha256: "AB".repeat(32) }
}

/// The files of a cloud-config: path, mode, content.
fn files(text: &str) -> Vec<(String, String, String)> {
    let entries = text.split("- path: ").skip(1);
    let value = |entry: &str, key: &str| {
        let line = entry.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        line.trim().trim_matches('"').to_owned()
    };
    entries
        .map(|entry| {
            let content = STANDARD.decode(value(entry, "content:")).unwrap();
            let path = entry.lines().next().unwrap().to_owned();
            (path, value(entry, "permissions:"), String::from_utf8(content).unwrap())
        })
        .collect()
}

#[test]
fn a_machine_is_given_the_configuration_for_root_only_and_a_script_that_installs_the_agent() {
    let config = parsed(&valid()).unwrap();
    let text = join_custom_data(&config, &agent()).unwrap();
    assert!(text.starts_with("#cloud-config\n"));
    assert_eq!(text, join_custom_data(&config, &agent()).unwrap());
    let files = files(&text);
    let (path, mode, content) = &files[0];
    assert_eq!((path.as_str(), mode.as_str()), (CONFIG_PATH, "0600"));
    assert_eq!(JoinConfig::parse(content.as_bytes()).unwrap(), config);
    let (_, mode, script) = &files[1];
    assert_eq!(mode, "0700");
    assert!(script.starts_with(r"#!/bin/sh"));
    assert!(script.contains(r"url='https://dl.example/it'\''s'"));
    assert!(script.contains(&format!("sha256='{}'", "ab".repeat(32))));
    assert!(script.contains("join --config \"$config\"") && !script.contains(TOKEN));
}

#[test]
fn what_azure_would_not_take_is_refused() {
    let mut config = parsed(&valid()).unwrap();
    for number in 0..1_200 {
        config.node.labels.insert(format!("key-{number}"), "v".repeat(40));
    }
    let error = join_custom_data(&config, &agent()).unwrap_err();
    assert!(error.length > LIMIT);
    assert!(error.to_string().ends_with("limit 65535"));
}

#[test]
fn the_page_has_every_number_and_every_limit() {
    let page = include_str!("../../../docs/node-join.md");
    for exit in JoinExit::ALL {
        let row = format!("| {} | {} |", exit.number(), exit.name());
        assert!(page.contains(&row), "{row}");
    }
    for step in Step::ALL {
        let row = format!(" {step} | {} s |", step.usual_limit());
        assert!(page.contains(&row), "{row}");
    }
}

/// A replacement for curl: records its arguments and its standard input, and delivers `payload`.
const CURL: &str = r#"#!/bin/sh
echo "$*" >>"$FOLDER/arguments"
cat >>"$FOLDER/input"
while [ "$1" != --output ]; do shift; done
cp "$FOLDER/payload" "$2"
printf '200 application/octet-stream'
"#;

#[test]
fn the_signed_address_of_the_agent_is_in_no_argument() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let payload = "#!/bin/sh\necho joined\n";
    fs::write(at("payload"), payload).unwrap();
    fs::create_dir(at("bin")).unwrap();
    fs::write(at("bin/curl"), CURL).unwrap();
    fs::set_permissions(at("bin/curl"), Permissions::from_mode(0o755)).unwrap();
    let sum = Command::new("sha256sum").arg(at("payload")).output().unwrap().stdout;
    let sha256 = String::from_utf8(sum).unwrap()[..64].to_owned();
    let url = "https://dl.example/agent?sv=1&sig=c2lnbmF0dXJl%3D\"\\it's".to_owned();
    let config = parsed(&valid()).unwrap();
    let text = join_custom_data(&config, &AgentArtifact { url, sha256 }).unwrap();
    let script = files(&text)[1].2.clone();
    let script = script.replace("\nroot=\n", &format!("\nroot={}\n", folder.path().display()));
    fs::write(at("script"), script).unwrap();

    let path = format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap());
    let mut run = Command::new("sh");
    let run = run.arg(at("script")).env("PATH", path).env("FOLDER", folder.path());
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"joined\n");
    let arguments = fs::read_to_string(at("arguments")).unwrap();
    assert!(!arguments.contains("dl.example") && !arguments.contains("sig="), "{arguments}");
    let input = fs::read_to_string(at("input")).unwrap();
    assert_eq!(input, "url = \"https://dl.example/agent?sv=1&sig=c2lnbmF0dXJl%3D\\\"\\\\it's\"\n");
}
