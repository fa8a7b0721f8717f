//! The CustomData of a VM.

#![allow(clippy::unwrap_used, reason = "what a test cannot read fails it")]

mod common;

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Ended, Machine};
use serde_json::Value;

const CONFIG: &str = r#"{"version":"v1","cluster_config":{"location":"eastus"},"enabled_features":{"ENABLE_X":"yes","PATH":"/evil"}}"#;

fn made(machine: &Machine, text: &str, more: &[&str]) -> Ended {
    let path = machine.file("/config.json", text).display().to_string();
    machine.run(&[&["customdata", path.as_str()], more].concat())
}

fn decoded(text: &str) -> String {
    String::from_utf8(STANDARD.decode(text.trim_end()).unwrap()).unwrap()
}

/// The parts of a multipart message: type and content.
fn parts(mime: &str) -> Vec<(String, String)> {
    let (head, body) = mime.split_once("\n\n").unwrap();
    let boundary = head.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(boundary.starts_with("bringup-") && boundary.len() == 8 + 32);
    let body = body.split(&format!("--{boundary}--\n")).next().unwrap();
    let between = format!("--{boundary}\n");
    let parts = body.split(&between).skip(1);
    let part = |text: &str| {
        let (head, content) = text.split_once("\n\n").unwrap();
        let kind = head.strip_prefix("Content-Type: ").unwrap().split(';').next().unwrap();
        (kind.to_owned(), content.to_owned())
    };
    parts.map(part).collect()
}

/// Runs the pipeline that unpacks the here-document of a file.
fn heredoc(script: &str, path: &str) -> Vec<u8> {
    let line = script.lines().find(|line| line.ends_with(&format!("| store {path}"))).unwrap();
    let (_, rest) = script.split_once(line).unwrap();
    let content = rest.split("END_OF_FILE").next().unwrap();
    let pipe = line.replace("<<'END_OF_FILE'", "").replace(&format!("| store {path}"), "");
    let mut shell = Command::new("bash")
        .args(["-c", &pipe])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    shell.wait_with_output().unwrap().stdout
}

const PATH: &str = "/opt/azure/containers/aks-node-controller-config.json";

#[test]
fn test_35_the_same_configuration_gives_the_same_bytes_which_unpack_to_it() {
    let machine = Machine::new();
    let first = made(&machine, CONFIG, &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    assert_eq!(first.out, made(&machine, CONFIG, &["--format=boothook"]).out);
    assert!(first.err.contains("enabled_features.PATH: left out"), "{}", first.err);
    let parts = parts(&decoded(&first.out));
    let kinds: Vec<&str> = parts.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["text/cloud-boothook", "text/cloud-config"]);
    assert_eq!(heredoc(&parts[0].1, PATH), CONFIG.as_bytes());
    let features = "/opt/azure/containers/enabled_features.sh";
    assert_eq!(heredoc(&parts[0].1, features), b"ENABLE_X=yes\n");
}

#[test]
fn test_35_a_large_configuration_is_packed_and_one_that_does_not_fit_is_refused() {
    let machine = Machine::new();
    let config = |text: &str| format!(r#"{{"version":"v1","message_of_the_day":"{text}"}}"#);
    let large = config(&"word ".repeat(18_000));
    let packed = made(&machine, &large, &[]);
    assert!(packed.code == 0 && packed.out.len() < 87_380, "{}", packed.err);
    let parts = parts(&decoded(&packed.out));
    assert_eq!(heredoc(&parts[0].1, PATH), large.as_bytes());

    let mut state = 1_u64;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                [(state >> 58) as usize],
        )
    })
    .take(90_000)
    .collect();
    let refused = made(&machine, &config(&noise), &[]);
    assert_eq!((refused.code, refused.out.as_str()), (65, ""));
    assert!(refused.err.contains("custom data is ") && refused.err.contains("limit 87380"));
    assert!(refused.err.contains(PATH), "{}", refused.err);
}

#[test]
fn test_36_ignition_enables_the_unit_links_it_and_writes_for_root_only() {
    let machine = Machine::new();
    let ended = made(&machine, CONFIG, &["--format", "ignition"]);
    let whole: Value = serde_json::from_str(&decoded(&ended.out)).unwrap();
    assert_eq!(whole["ignition"]["version"], "3.4.0");
    let unit = &whole["systemd"]["units"][0];
    assert_eq!(
        (&unit["name"], &unit["enabled"]),
        (&"aks-node-controller.service".into(), &true.into())
    );
    assert_eq!(
        whole["storage"]["links"][0]["path"],
        "/etc/systemd/system/basic.target.wants/aks-node-controller.service"
    );
    let files = whole["storage"]["files"].as_array().unwrap();
    assert!(files.len() == 2 && files.iter().all(|file| file["mode"] == 384));
}

#[test]
fn what_cannot_be_used_is_said_on_the_standard_error() {
    let machine = Machine::new();
    let refused = made(&machine, "{", &[]);
    assert_eq!((refused.code, refused.out.as_str()), (65, ""));
    assert!(refused.err.contains("line 1 column 2: unexpected end of input"), "{}", refused.err);
    assert_eq!(made(&machine, CONFIG, &["--format=tape"]).code, 64);
    assert_eq!(machine.run(&["customdata"]).code, 64);
    assert_eq!(machine.run(&["--exit-code=legacy", "customdata"]).code, 1);
}
