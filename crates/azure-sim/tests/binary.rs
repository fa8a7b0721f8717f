//! The simulator as a program: its output, its exit codes, and its errors.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod clients;

use std::path::Path;

use bytes::Bytes;
use clients::{HttpsClient, MACHINES, Program, control};
use rustix::process::Signal;
use serde_json::json;

/// Runs the program to its end and returns its exit code and the lines of its standard error.
fn failed(arguments: &[&str]) -> (i32, Vec<String>) {
    let output = Program::command().args(arguments).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let lines = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    (output.status.code().unwrap(), lines)
}

#[tokio::test]
async fn it_says_where_it_is_answers_there_and_ends_with_its_input() {
    let program = Program::start(&["--clock", "manual"]);
    let client = HttpsClient::trusting(Path::new(program.said("caFile")));
    let response = client.request(program.said("endpoint"), "GET", MACHINES, Bytes::new()).await;
    assert_eq!(response.status(), 200);
    let (_, clock) = control(program.said("control"), "GET", "/clock", "").await;
    assert_eq!(clock["now"], program.said("now"));

    let directory = Path::new(program.said("caFile")).parent().unwrap().to_owned();
    assert!(directory.exists());
    assert_eq!(program.end(), (json!({ "leaked": [], "counts": {} }), 0));
    assert!(!directory.exists(), "the certificate's directory goes with the program");
}

#[test]
fn both_signals_that_ask_it_to_end_are_heard() {
    for signal in [Signal::TERM, Signal::INT] {
        let (_, code) = Program::start(&[]).signal(signal);
        assert_eq!(code, 0);
    }
}

#[tokio::test]
async fn what_was_left_behind_is_named_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = directory.path().join("ca.pem");
    let program =
        Program::start(&["--clock", "manual", "--ca-file", certificate.to_str().unwrap()]);
    let client = HttpsClient::trusting(&certificate);
    let nic =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/left";
    let subnet = "/subscriptions/s/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes";
    let body = json!({
        "location": "eastus",
        "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": subnet } } }] },
    });
    let response = client
        .request(
            program.said("endpoint"),
            "PUT",
            &format!("{nic}?api-version=2024-05-01"),
            body.to_string().into(),
        )
        .await;
    assert_eq!(response.status(), 201, "{:?}", response.body());

    let (said, code) = program.end();
    assert_eq!(code, 0);
    assert_eq!(said["counts"], json!({ "Microsoft.Network/networkInterfaces": 1 }));
    assert_eq!(said["leaked"][0]["id"], nic);
    assert!(certificate.exists(), "a certificate that was asked for stays");
}

#[test]
fn a_malformed_scenario_is_named_with_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.yaml");
    std::fs::write(&path, "seed: 1\nrules:\n  - name: a\n    bot: {}\n").unwrap();
    let (code, lines) = failed(&["--scenario", path.to_str().unwrap()]);
    assert_eq!(code, 65);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&format!("{}:4:5: ", path.display())), "{lines:?}");
    assert!(
        lines[0].contains("unknown field `bot`, expected one of name, when, boot"),
        "{lines:?}"
    );
}

#[test]
fn a_scenario_that_is_not_there_is_said_in_one_line() {
    let (code, lines) = failed(&["--scenario", "no-such-file.yaml"]);
    assert_eq!(code, 1);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("cannot read scenario no-such-file.yaml: "), "{lines:?}");
}

#[test]
fn wrong_arguments_are_said_in_one_line() {
    for (arguments, said) in [
        (["--clock", "fast"], "`fast` is not a clock: expected manual, real, or xN"),
        (["--port", "many"], "invalid value 'many' for '--port"),
        (["--speed", "1"], "unexpected argument '--speed'"),
    ] {
        let (code, lines) = failed(&arguments);
        assert_eq!(code, 64, "{lines:?}");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(said), "{lines:?}");
    }
}

#[test]
fn an_occupied_port_is_said_in_one_line_with_the_way_out() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = occupied.local_addr().unwrap().port();
    for option in ["--port", "--control-port"] {
        let (code, lines) = failed(&[option, &port.to_string()]);
        assert_eq!(code, 1);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("cannot listen on 127.0.0.1:{port}: ")), "{lines:?}");
        assert!(lines[0].ends_with(&format!("; choose another with {option}")), "{lines:?}");
    }
}

#[test]
fn help_shows_how_to_use_it() {
    let output = Program::command().arg("--help").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["--scenario <FILE>", "Examples:", "/clock", "Exit codes:"] {
        assert!(text.contains(part), "{text}");
    }
}
