//! The CustomData of a VM.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::node_config::{
    CSE, Configuration, Form, LIMIT, NodeBootstrapping, NodeConfig, node_bootstrapping, scale_set,
};
use flate2::read::GzDecoder;
use serde_json::Value;

const CONFIG: &str = r#"{"version":"v1","vm_size":"Standard_D2s_v5","linux_admin_username":"ada",
  "cluster_config":{"location":"eastus"},"enabled_features":{"ENABLE_X":"true","PATH":"/evil","ENABLE_Y":"a\nb"}}"#;

fn made(text: &str, form: Form) -> NodeBootstrapping {
    node_bootstrapping(&NodeConfig::parse(text.as_bytes()).unwrap(), form).unwrap()
}

fn text_of(made: &NodeBootstrapping) -> String {
    String::from_utf8(STANDARD.decode(&made.custom_data).unwrap()).unwrap()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

/// The content of the here-document `<<'END_OF_FILE'` for a file.
fn heredoc(script: &str, path: &str) -> Vec<u8> {
    let (head, rest) = script.split_once(&format!("store {path}\n")).unwrap();
    let packed = head.lines().last().unwrap().contains("gzip -d");
    let body: String = rest.split("END_OF_FILE").next().unwrap().split_whitespace().collect();
    let bytes = STANDARD.decode(body).unwrap();
    if packed { unpacked(&bytes) } else { bytes }
}

fn with_motd(length: usize, pattern: fn(usize) -> char) -> String {
    let text: String = (0..length).map(pattern).collect();
    let config = Configuration {
        version: "v1".to_owned(),
        message_of_the_day: text,
        ..Configuration::default()
    };
    config.to_json()
}

/// Characters that do not compress well.
fn noise(index: usize) -> char {
    let mut mixed = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 29;
    mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    char::from(b'!' + u8::try_from((mixed >> 40) % 90).unwrap())
}

#[test]
fn test_e35_custom_data_is_the_same_twice_and_holds_the_configuration() {
    let first = made(CONFIG, Form::Boothook);
    assert_eq!(first, made(CONFIG, Form::Boothook));
    let text = text_of(&first);
    let (head, body) = text.split_once("\n\n").unwrap();
    let boundary = head.split('"').nth(1).unwrap();
    assert!(boundary.starts_with("bringup-") && boundary.len() == "bringup-".len() + 32);
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 4);
    assert!(parts[1].contains("Content-Type: text/cloud-boothook"));
    assert!(parts[2].contains("Content-Type: text/cloud-config"));
    assert_eq!(parts[3].trim(), "--");
    let config = heredoc(parts[1], "/opt/azure/containers/aks-node-controller-config.json");
    assert_eq!(config, CONFIG.as_bytes());
    let features = heredoc(parts[1], "/opt/azure/containers/enabled_features.sh");
    assert_eq!(features, b"ENABLE_X=true\n");
    assert_eq!(first.dropped_features, ["ENABLE_Y", "PATH"]);
    assert_eq!(first.cse, CSE);
}

#[test]
fn test_e35_what_is_too_long_is_packed_and_else_refused() {
    let text = with_motd(90_000, |index| char::from(b'a' + u8::try_from(index % 7).unwrap()));
    let packed = made(&text, Form::Boothook);
    assert!(packed.custom_data.len() < LIMIT);
    let script = text_of(&packed);
    let config = heredoc(&script, "/opt/azure/containers/aks-node-controller-config.json");
    assert_eq!(config, text.as_bytes());

    let config = NodeConfig::parse(with_motd(90_000, noise).as_bytes()).unwrap();
    for form in [Form::Boothook, Form::CloudConfig, Form::Ignition] {
        let refused = node_bootstrapping(&config, form).unwrap_err().to_string();
        assert!(refused.starts_with("custom data is "), "{refused}");
        assert!(refused.contains(" characters, limit 87380"), "{refused}");
        assert!(refused.contains("aks-node-controller-config.json"), "{refused}");
    }
}

#[test]
fn test_e36_ignition_enables_and_links_the_unit() {
    let made = made(CONFIG, Form::Ignition);
    let whole: Value = serde_json::from_str(&text_of(&made)).unwrap();
    assert_eq!(whole["ignition"]["version"], "3.4.0");
    let unit = &whole["systemd"]["units"][0];
    assert_eq!(
        (&unit["name"], &unit["enabled"]),
        (&"aks-node-controller.service".into(), &true.into())
    );
    let link = &whole["storage"]["links"][0]["path"];
    assert_eq!(link, "/etc/systemd/system/basic.target.wants/aks-node-controller.service");
    let file = &whole["storage"]["files"][0];
    assert_eq!(file["mode"], 384);
    let source = file["contents"]["source"].as_str().unwrap();
    let bytes = STANDARD.decode(source.strip_prefix("data:;base64,").unwrap()).unwrap();
    let packed = file["contents"]["compression"] == "gzip";
    assert_eq!(if packed { unpacked(&bytes) } else { bytes }, CONFIG.as_bytes());
}

#[test]
fn old_images_get_a_plain_cloud_config() {
    let text = text_of(&made(r#"{"version":"v1"}"#, Form::CloudConfig));
    assert_eq!(
        text,
        format!(
            "#cloud-config\nwrite_files:\n\
             - path: /opt/azure/containers/aks-node-controller-config.json\n  \
             permissions: \"0755\"\n  owner: root\n  content: !!binary |\n    {}\n",
            STANDARD.encode(r#"{"version":"v1"}"#)
        )
    );
}

#[test]
fn the_boothook_is_a_script_that_bash_can_read() {
    let text = text_of(&made(CONFIG, Form::Boothook));
    let script = text.split("#cloud-boothook\n").nth(1).unwrap();
    let script = script.split("\n--bringup-").next().unwrap();
    let read = std::process::Command::new("bash").args(["-n", "-c", script]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn a_scale_set_has_the_custom_data_and_the_extension() {
    let config = NodeConfig::parse(CONFIG.as_bytes()).unwrap();
    let made = node_bootstrapping(&config, Form::Boothook).unwrap();
    let body = scale_set(&config.configuration, &made, 3);
    assert_eq!(body["location"], "eastus");
    assert_eq!(
        (&body["sku"]["name"], &body["sku"]["capacity"]),
        (&"Standard_D2s_v5".into(), &3.into())
    );
    let profile = &body["properties"]["virtualMachineProfile"];
    assert_eq!(profile["osProfile"]["customData"], made.custom_data.as_str());
    assert_eq!(profile["osProfile"]["adminUsername"], "ada");
    let extension = &profile["extensionProfile"]["extensions"][0];
    assert_eq!(extension["name"], "vmssCSE");
    assert_eq!(extension["properties"]["protectedSettings"]["commandToExecute"], CSE);
}

#[test]
fn custom_data_is_not_in_the_debug_text() {
    let made = made(CONFIG, Form::Boothook);
    assert!(!format!("{made:?}").contains(&made.custom_data[..40]));
}
