//! `wait`: its exit codes and its output.

mod common;
mod sentinel_common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Ended, Killed, Machine};
use sentinel_common::*;
use serde_json::Value;

#[test]
fn test_46_when_cloud_init_has_ended_the_sentinel_gets_time_to_settle_and_no_more() {
    let machine = Machine::new();
    machine.cloud_init_ends(r#"{"v1":{"datasource":"DataSourceAzure","errors":[]}}"#);
    let begun = Instant::now();
    let ended = wait(&machine, &["--timeout=10m", "--settle=1s"]);
    assert_eq!(ended.code, 20, "{}", ended.err);
    // At least the settle time, and not the ten minutes of the wait, which would end with another code.
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    let summary = summary(&ended);
    assert_eq!((&summary["cause"], &summary["conf"]), (&"Unknown".into(), &"low".into()));
    assert!(ended.err.contains("cloud-init has ended"), "{}", ended.err);
}

#[test]
fn test_46_a_cloud_init_that_only_complains_is_no_failure() {
    let machine = Machine::new();
    let complaint = r#"{"v1":{"datasource":"DataSourceAzure","stage":null,"init":{"errors":[],"recoverable_errors":{"WARNING":["odd"]}}}}"#;
    machine.file("/run/cloud-init/status.json", complaint);
    machine.cloud_init_ends(r#"{"v1":{"errors":[]}}"#);
    machine.file(SENTINEL, "");
    assert_eq!(wait(&machine, &PATIENT).code, 0);
    let cloud_init = &machine.json(REPORT)["cloud_init"];
    assert_eq!(cloud_init["recoverable"][0], "odd");
    assert_eq!(cloud_init["errors"], Value::Array(Vec::new()));
}

#[test]
fn test_46_the_result_of_an_earlier_boot_is_not_the_end() {
    let machine = Machine::new();
    let (folder, result) = (on_disk(), machine.at(RESULT));
    let target = folder.path().join("cloud-init");
    fs::create_dir_all(&target).unwrap();
    fs::create_dir_all(result.parent().unwrap().parent().unwrap()).unwrap();
    symlink(&target, result.parent().unwrap()).unwrap();
    write_old(&result);
    let ended = wait(&machine, &["--timeout=50ms", "--settle=0s"]);
    assert_eq!(ended.code, 11, "{}", ended.err);
}

#[test]
fn test_46_what_the_log_blames_becomes_the_code() {
    for (log, code, cause) in [
        ("curl: (6) Could not resolve host: dl.example.com", 25, "DnsFailure"),
        ("runcmd: 5: kubeadm: not found", 23, "BinaryMissing"),
        (
            "error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"",
            27,
            "BootstrapTokenInvalid",
        ),
        ("cp: error writing '/opt/bin/kubelet': No space left on device", 32, "DiskFull"),
        (
            "error execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
            28,
            "VmTooSmall",
        ),
        ("cc_scripts_user.py[WARNING]: Failed to run module scripts_user", 22, "UserDataInvalid"),
        ("util.py[WARNING]: Failed loading yaml blob", 21, "UserDataInvalid"),
    ] {
        let machine = Machine::new();
        machine.file(OUTPUT, &format!("Cloud-init v. 25.1 running 'modules:final'\n{log}\n"));
        machine.cloud_init_ends(r#"{"v1":{"errors":[]}}"#);
        let ended = wait(&machine, &PATIENT);
        let summary = summary(&ended);
        assert_eq!((ended.code, &summary["cause"]), (code, &cause.into()), "{log}: {}", ended.err);
        assert_eq!(summary["exit"], code);
        let evidence = summary["ev"][0].as_str().unwrap();
        assert!(log.contains(evidence.trim_end_matches('…').trim()), "{evidence}");
        let report = machine.json(REPORT);
        assert!(report["signature"]["id"].is_string(), "{report}");
        assert!(report["signature"]["line"].as_u64().unwrap() >= 2);
    }
}

#[test]
fn test_46_a_unit_that_failed_is_an_end_and_one_that_runs_is_none() {
    let machine = Machine::new();
    systemd_says(&machine, "failed", "failed", "exit-code");
    let ended = wait(&machine, &[&["--watch=unit=kubeadm"], PATIENT.as_slice()].concat());
    assert_eq!(ended.code, 22, "{}", ended.err);
    assert!(ended.err.contains("kubeadm.service failed: exit-code"), "{}", ended.err);

    let machine = Machine::new();
    systemd_says(&machine, "activating", "start", "success");
    let ended = wait(&machine, &["--watch=unit=kubeadm", "--timeout=50ms"]);
    assert_eq!(ended.code, 10, "{}", ended.err);

    let machine = Machine::new();
    machine.remove("/usr/bin/systemctl");
    let ended = wait(&machine, &["--watch=unit=kubeadm", "--timeout=50ms"]);
    assert_eq!(ended.code, 12, "it cannot be told: {}", ended.err);
}

#[test]
fn test_46_a_failed_cloud_final_is_an_end() {
    let machine = Machine::new();
    systemd_says(&machine, "failed", "failed", "exit-code");
    let ended = wait(&machine, &PATIENT);
    assert_eq!(ended.code, 20);
    assert!(ended.err.contains("cloud-final.service failed"), "{}", ended.err);
}

#[test]
fn test_46_the_result_of_the_aks_scripts_decides_without_a_sentinel() {
    let aks = [&["--watch=aks"], PATIENT.as_slice()].concat();
    let machine = Machine::new();
    machine.leave_result(r#"{ "ExitCode": "0", "Output": "" }"#);
    assert_eq!(wait(&machine, &aks).code, 0);

    let machine = Machine::new();
    machine.leave_result(
        r#"{ "ExitCode": "50", "Output": "curl: (6) Could not resolve host: mcr.example.com\n+ exit 50" }"#,
    );
    let ended = wait(&machine, &aks);
    assert_eq!(ended.code, 25, "{}", ended.err);
    let summary = summary(&ended);
    assert_eq!((&summary["code"], &summary["exit"]), (&50.into(), &25.into()));
    assert!(summary["name"].as_str().unwrap().starts_with("ERR_"), "{summary}");
}

#[test]
fn test_46_an_empty_user_data_is_said_to_be_missing() {
    let machine = Machine::new();
    machine.file("/var/lib/cloud/instance/user-data.txt", "\n");
    machine.cloud_init_ends(r#"{"v1":{"errors":[]}}"#);
    assert_eq!(wait(&machine, &PATIENT).code, 13);
}

#[test]
fn test_46_commands_after_the_sentinel_are_judged_only_if_asked() {
    let machine = Machine::new();
    machine.file(SENTINEL, "");
    machine.file(OUTPUT, "cc_scripts_user.py[WARNING]: Failed to run module scripts_user\n");
    machine.cloud_init_ends(r#"{"v1":{"errors":[]}}"#);
    let asked = [&["--post-commands"], PATIENT.as_slice()].concat();
    assert_eq!(wait(&machine, &asked).code, 33);
    fs::remove_file(machine.at(STATE)).unwrap();
    assert_eq!(wait(&machine, &PATIENT).code, 0);
}

#[test]
fn test_48_a_failure_sentinel_ends_with_35_and_brings_its_code() {
    let machine = Machine::new();
    let child = start(&machine, &PATIENT);
    let text =
        r#"{"code":42,"cause":"DnsFailure","message":"no name; token abcdef.0123456789abcdef"}"#;
    // The file appears complete, because the wait checks continuously.
    let part = machine.file(&format!("{FAILURE}.part"), text);
    fs::rename(part, machine.at(FAILURE)).unwrap();
    let ended = end_of(child);
    assert_eq!(ended.code, 35, "{}", ended.err);
    let summary = summary(&ended);
    assert_eq!((&summary["code"], &summary["cause"]), (&42.into(), &"DnsFailure".into()));
    assert_eq!(machine.json(REPORT)["code"], 42);
    assert!(ended.err.contains("42") && !ended.err.contains("0123456789abcdef"), "{}", ended.err);
}

#[test]
fn test_49_a_huge_log_with_any_bytes_gives_a_verdict_within_its_bounds() {
    let machine = Machine::new();
    let mut log = "nothing to see here, again and again and again\n".repeat(240_000).into_bytes();
    assert!(log.len() > 10 << 20);
    for _ in 0..40 {
        log.extend([0xff, 0xfe, 0x00, 0x1b, b'[', b'3', b'1', b'm']);
        log.extend(b"curl: (6) Could not resolve host: dl.example.com \xf0\x9f \"\\\xff\n");
    }
    fs::create_dir_all(machine.at("/var/log")).unwrap();
    fs::write(machine.at(OUTPUT), log).unwrap();
    machine.cloud_init_ends("");
    let ended = wait(&machine, &[&["--max-bytes=600"], PATIENT.as_slice()].concat());
    assert_eq!(ended.code, 25, "{}", ended.err);
    summary(&ended);
    assert!(ended.out.len() <= 600, "{} bytes", ended.out.len());
}

#[test]
fn test_50_two_waits_at_once_come_to_the_same_verdict() {
    let machine = Machine::new();
    let first = start(&machine, &PATIENT);
    let state = machine.json(STATE)["pid"].clone();
    let second = Killed(machine.start(&[&["wait"], PATIENT.as_slice()].concat()));
    until(|| machine.json(STATE)["pid"] != state);
    machine.file(SENTINEL, "");
    let (first, second) = (end_of(first), end_of(second));
    assert_eq!((first.code, second.code), (0, 0));
    assert!(warned(&second, "another wait runs"), "{}", second.out);
}

#[test]
fn test_50_where_nothing_can_be_written_the_verdict_is_right_and_warns() {
    let machine = Machine::new();
    // Files in place of directories: no user can write there, not even root.
    machine.file("/var/log/bringup-node", "");
    machine.file("/var/lib/bringup-node", "");
    machine.file(SENTINEL, "");
    let ended = wait(&machine, &PATIENT);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(warned(&ended, "report.json is not written"), "{}", ended.out);
    assert!(warned(&ended, "wait.json is not written"), "{}", ended.out);
    assert_eq!(summary(&ended)["report"], Value::Null);
}

#[test]
fn test_50_a_node_that_joined_with_a_read_only_run_is_no_failure_unless_wanted() {
    let joined = |flags: &[&str]| {
        let machine = Machine::new();
        machine.file("/run", "");
        machine.file(
            OUTPUT,
            "[preflight] Running pre-flight checks\nThis node has joined the cluster:\nruncmd: 9: cannot create /run/cluster-api/bootstrap-success.complete: Read-only file system\n",
        );
        systemd_says(&machine, "failed", "failed", "exit-code");
        wait(&machine, &[flags, PATIENT.as_slice()].concat())
    };
    let ended = joined(&[]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(summary(&ended)["exit"], 3);
    assert!(warned(&ended, "joined without a sentinel"), "{}", ended.out);
    assert_eq!(joined(&["--strict"]).code, 3);
    assert_eq!(joined(&["--on-joined-without-sentinel=fail"]).code, 20);
}

#[test]
fn a_second_run_returns_the_same_verdict_also_of_a_failure() {
    let machine = Machine::new();
    machine.file(OUTPUT, "curl: (6) Could not resolve host: dl.example.com\n");
    machine.cloud_init_ends("");
    let first = wait(&machine, &PATIENT);
    assert_eq!(first.code, 25);
    machine.remove(OUTPUT);
    let second = wait(&machine, &PATIENT);
    assert_eq!((second.code, &second.out), (25, &first.out));
    machine.file(SENTINEL, "");
    let third = wait(&machine, &PATIENT);
    assert_eq!(third.code, 25);
    assert!(warned(&third, "the sentinel exists now"));
}

#[test]
fn the_report_is_printed_before_the_summary_and_kept() {
    let machine = Machine::new();
    machine.file(SENTINEL, "");
    let ended = wait(&machine, &[&["--report=json"], PATIENT.as_slice()].concat());
    let first: Value = serde_json::from_str(ended.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["exit"], ended.out.lines().count()), (&0.into(), 2));
    summary(&ended);
    let kept = machine.run(&["report", "--json"]);
    assert_eq!(kept.code, 0);
    let kept: Value = serde_json::from_str(&kept.out).unwrap();
    for key in [
        "phase",
        "signature",
        "waited_ms",
        "deadline_ms",
        "boots",
        "cloud_init",
        "kubeadm",
        "kubelet",
        "disk_free",
        "clock_skew_ms",
        "evidence",
    ] {
        assert!(kept.get(key).is_some(), "{key}");
    }
    assert_eq!((&kept["boots"], &kept["deadline_ms"]), (&1.into(), &600_000.into()));
    assert!(kept["disk_free"].as_u64().is_some());
}

#[test]
fn the_console_gets_the_summary_in_a_line_of_its_own() {
    let machine = Machine::new();
    machine.file(SENTINEL, "");
    machine.file("/dev/console", "in the middle of");
    let ended = wait(&machine, &[&["--console"], PATIENT.as_slice()].concat());
    assert_eq!(ended.code, 0);
    let console = machine.read("/dev/console");
    assert_eq!(console, format!("in the middle of\n{}", ended.out));

    let machine = Machine::new();
    machine.file(SENTINEL, "");
    let ended = wait(&machine, &[&["--console"], PATIENT.as_slice()].concat());
    assert_eq!(ended.code, 0);
    assert!(warned(&ended, "the console takes nothing"), "{}", ended.out);
}

#[test]
fn settings_come_from_flags_then_variables_then_the_file() {
    let machine = Machine::new();
    let sentinel: PathBuf = machine.file("/opt/mine", "");
    machine.file(
        "/etc/bringup-node/wait.toml",
        &format!("sentinel = \"{}\"\ntimeout = \"300s\"\n", sentinel.display()),
    );
    assert_eq!(wait(&machine, &[]).code, 0);
    assert_eq!(machine.json(REPORT)["deadline_ms"], 300_000);
    fs::remove_file(machine.at(STATE)).unwrap();
    let with_variable = |flags: &[&str]| {
        let mut command = machine.command(&[&["wait"], flags].concat());
        Ended::of(&command.env("BRINGUP_NODE_WAIT_TIMEOUT", "200s").output().unwrap())
    };
    assert_eq!(with_variable(&[]).code, 0);
    assert_eq!(machine.json(REPORT)["deadline_ms"], 200_000);
    fs::remove_file(machine.at(STATE)).unwrap();
    assert_eq!(with_variable(&["--timeout=100s"]).code, 0);
    assert_eq!(machine.json(REPORT)["deadline_ms"], 100_000);
}

#[test]
fn kubelet_is_asked_only_if_wanted_and_counts_as_joined_with_its_credentials() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 256]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nok");
        }
    });
    let judged = |flags: &[&str]| {
        let machine = Machine::new();
        let settings = format!("[endpoints]\nkubelet = \"{address}\"\n");
        machine.file("/etc/bringup-node/config.toml", &settings);
        machine.file("/etc/kubernetes/kubelet.conf", "");
        machine.cloud_init_ends("");
        let ended = wait(&machine, &[flags, PATIENT.as_slice()].concat());
        (summary(&ended)["exit"].clone(), machine.json(REPORT)["kubelet"]["healthz"].clone())
    };
    assert_eq!(judged(&[]), (20.into(), Value::Null));
    assert_eq!(judged(&["--probe=kubelet"]), (3.into(), "ok".into()));
}

#[test]
fn a_wrong_flag_is_a_wrong_command() {
    let machine = Machine::new();
    for flags in [["--nope"], ["--watch=cloudbase-init"], ["--probe=dns"], ["word"]] {
        let ended = wait(&machine, &flags);
        assert_eq!((ended.code, ended.out.as_str()), (64, ""), "{flags:?}");
    }
}
