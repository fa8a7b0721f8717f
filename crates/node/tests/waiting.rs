//! How long `provision-wait` waits.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use common::{Ended, Killed, Machine, pipe, until};

#[test]
fn test_e20_a_result_is_seen_at_once_also_when_it_is_renamed_into_place() {
    for renamed in [false, true] {
        let machine = Machine::new();
        machine.file("/var/log/azure/aks/provision.json", r#"{"ExitCode":"0"}"#);
        // The waiter does not check by itself: only the change wakes it.
        let mut waiter = machine.command(&["provision-wait"]);
        waiter.env("BRINGUP_NODE_TEST_NO_POLL", "1");
        let waiter = waiter.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = machine.at("/var/log/azure/aks-node-controller.log");
        until("the waiter begins", || log.exists());
        let path = machine.at("/opt/azure/containers/provision.complete");
        if renamed {
            let beside = machine.file("/opt/azure/containers/.x", "");
            fs::rename(beside, path).unwrap();
        } else {
            fs::write(path, "").unwrap();
        }
        assert_eq!(Ended::of_child(waiter).code, 0);
    }
}

#[test]
fn test_e21_when_nothing_ever_starts_the_code_is_244() {
    let machine = Machine::new();
    let ended = machine.run(&["provision-wait", "--start-timeout=50ms"]);
    assert_eq!(ended.code, 244);
    assert_eq!(ended.document()["ExitCode"], "244");
    let summary = ended.summary();
    assert_eq!(summary["name"], "NEVER_STARTED");
    assert_eq!(summary["cause"], "ProvisionerNeverStarted");
}

#[test]
fn test_e22_when_agent_and_scripts_are_killed_the_code_is_245() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script("read x <$R/wait");
    let flag = format!("--nbc-cmd={}", script.display());
    let mut agent = Killed(machine.start(&["provision", &flag]));
    let child = child_pid(&machine);
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    kill(child);
    // By the simulated clock, the waiter ends after seconds, long before its own limit.
    let mut waiter = machine.start(&["provision-wait", "--timeout=80m"]);
    let mut seconds = 0;
    until("the waiter ends", || {
        seconds += 1;
        machine.set_clock(Duration::from_secs(seconds));
        waiter.try_wait().unwrap().is_some()
    });
    let ended = Ended::of_child(waiter);
    assert_eq!(ended.code, 245, "{}", ended.err);
    assert_eq!(ended.summary()["name"], "PROVISIONER_DIED");
}

#[test]
fn test_e22_when_only_the_agent_is_killed_the_scripts_go_on_and_their_result_comes_out() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script(
        "read x <$R/wait; for i in {1..2000}; do echo 'no longer read'; done\n\
         echo '{\"ExitCode\":\"42\",\"Output\":\"\"}' >$L/aks/provision.json; touch $C/provision.complete",
    );
    let flag = format!("--nbc-cmd={}", script.display());
    let mut agent = machine.start(&["provision", &flag]);
    child_pid(&machine);
    agent.kill().unwrap();
    drop(agent.stdout.take());
    drop(agent.stderr.take());
    agent.wait().unwrap();
    fs::write(machine.at("/wait"), "go\n").unwrap();
    assert_eq!(machine.wait().code, 42);
}

#[test]
fn test_e22_when_time_is_up_the_code_is_246_and_the_step_is_named() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script(
        "echo '+ logs_to_events AKS.CSE.slow.step slow' >$L/cluster-provision.log; read x <$R/wait",
    );
    let flag = format!("--nbc-cmd={}", script.display());
    let mut agent = Killed(machine.start(&["provision", &flag]));
    let child = child_pid(&machine);
    until("the step begins", || !machine.read("/var/log/azure/cluster-provision.log").is_empty());
    let ended = machine.run(&["provision-wait", "--timeout=50ms"]);
    assert_eq!(ended.code, 246);
    assert_eq!(ended.summary()["step"], "AKS.CSE.slow.step");
    assert_eq!(ended.summary()["cause"], "TimeBudgetExhausted");
    kill(child);
    assert_eq!(agent.0.wait().unwrap().code(), Some(255));
}

#[test]
fn test_e23_a_prepared_base_is_a_success_without_marks() {
    let machine = Machine::new();
    assert_eq!(machine.provision("touch $C/base_prep.complete", &[]).code, 0);
    assert!(!machine.has("provision.complete") && !machine.has("provision.succeeded"));
    assert_eq!(machine.wait().code, 0);
}

#[test]
fn a_base_that_was_not_prepared_is_a_failure_though_its_file_is_there() {
    let machine = Machine::new();
    let script = "echo '{\"ExitCode\":\"50\",\"Output\":\"\"}' >$L/aks/provision.json; touch $C/base_prep.complete";
    assert_eq!(machine.provision(script, &[]).code, 50);
    assert_eq!(machine.wait().code, 50);
}

#[test]
fn test_e24_the_upload_of_logs_after_the_end_is_not_waited_for() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script(
        "echo '{\"ExitCode\":\"50\",\"Output\":\"\"}' >$L/aks/provision.json; touch $C/provision.complete; read x <$R/wait",
    );
    let flag = format!("--nbc-cmd={}", script.display());
    let agent = machine.start(&["provision", &flag]);
    let ended = machine.wait();
    assert_eq!(ended.code, 50);
    assert_eq!(ended.summary()["run"], machine.json("/var/lib/bringup-node/run.json")["run_id"]);
    assert_eq!(machine.json("/opt/azure/containers/provision.failed")["exit"], 50);
    fs::write(machine.at("/wait"), "go\n").unwrap();
    assert_eq!(Ended::of(&agent.wait_with_output().unwrap()).code, 50);
}

/// Waits until the scripts run: before that, the process is a gate.
fn child_pid(machine: &Machine) -> u64 {
    let mut found = None;
    until("the scripts run", || {
        let run = machine.json("/var/lib/bringup-node/run.json");
        found = run["child_pid"].as_u64().filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "bash\n")
        });
        found.is_some()
    });
    found.unwrap()
}

fn kill(pid: u64) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}
