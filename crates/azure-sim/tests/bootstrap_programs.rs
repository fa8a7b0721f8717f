//! A real program in place of a VM's bootstrap.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use std::process::Command;

use bringup_azure_sim::endpoints::ProgramRunner;
use common::Client;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::OpenOptions;

/// A VM that waits for a program to run this script.
fn bootstrapping(script: &str) -> Client {
    let client = Client::new(&format!(
        "rules: [{{ name: real, boot: {{ script: {{ runs: [sh, -c, {script:?}] }} }} }}]"
    ));
    client.finish(&client.create_vm("vm-a", "202601.27.0"));
    assert_eq!(client.put_cse("vm-a").status, 201);
    client.advance(300);
    client
}

/// Waits for the end of the program, and until Azure shows its result.
async fn ended(client: &Client) -> Value {
    let mut changes = client.simulator.changes();
    client.simulator.changed(&mut changes).await;
    client.advance(300);
    client.instance_view("vm-a")["extensions"][0]["statuses"][0].clone()
}

#[tokio::test]
async fn its_output_and_exit_code_become_the_extensions() {
    let client =
        bootstrapping("echo to $BRINGUP_SIM_VM; echo ran $BRINGUP_SIM_COMMAND >&2; exit 50");
    let _runner = ProgramRunner::start(client.simulator.clone());
    let status = ended(&client).await;
    assert_eq!(status["level"], "Error", "{status}");
    let message = status["message"].as_str().unwrap();
    for part in ["exit status=50", "vm-a", "ran secret command"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn one_that_succeeds_brings_the_node_up() {
    let client = bootstrapping("exit 0");
    let _runner = ProgramRunner::start(client.simulator.clone());
    let status = ended(&client).await;
    assert_eq!(status["code"], "ProvisioningState/succeeded", "{status}");
    client.advance(300);
    assert_eq!(client.node_names(), ["vm-a"]);
}

#[tokio::test]
async fn what_it_says_under_cloud_init_is_on_the_console() {
    let client = Client::new(
        "rules: [{name: real, boot: {bootstrap: custom-data, script: {runs: [sh, -c, 'echo so it was; exit 7']}}}]",
    );
    client.finish(&client.create_vm("vm-a", "202601.27.0"));
    client.advance(300);
    let _runner = ProgramRunner::start(client.simulator.clone());
    let mut changes = client.simulator.changes();
    while client.simulator.with(|azure| azure.programs_run()) {
        client.simulator.changed(&mut changes).await;
    }
    client.advance(300);
    let path = format!("{}/retrieveBootDiagnosticsData", common::vm("vm-a"));
    let addresses = client.post(&path, &serde_json::json!({}));
    let address = addresses.body["serialConsoleLogBlobUri"].as_str().unwrap();
    let console = client.send("GET", address, None).bytes;
    let console = String::from_utf8_lossy(&console);
    assert!(console.contains("\r\nso it was\r\n") && !console.contains("ExitCode"), "{console}");
    assert!(client.node_names().is_empty());
}

#[tokio::test]
async fn a_runner_that_is_dropped_ends_what_it_started_and_what_that_started() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut alive = OpenOptions::new().open_receiver(&pipe).unwrap();

    let script = format!("exec 3> {}; echo started >&3; sleep 1000; true", pipe.display());
    let runner = ProgramRunner::start(bootstrapping(&script).simulator);
    alive.readable().await.unwrap();
    let mut line = [0; 8];
    alive.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"started\n");

    drop(runner);
    // The pipe ends when neither the shell nor its child holds its other end.
    assert_eq!(alive.read(&mut line).await.unwrap(), 0);
}
