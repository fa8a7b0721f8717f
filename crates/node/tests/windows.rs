//! `wait` on Windows: the real program with wine. Without a cross compiler or wine, these tests are skipped,
//! or fail with `BRINGUP_REQUIRE=windows`.

#![cfg(unix)]

mod common;
#[path = "windows/machine.rs"]
mod machine;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime};

use machine::*;
use serde_json::Value;

#[test]
fn test_51_a_sentinel_is_seen_at_start_later_in_a_new_directory_and_by_rename() {
    let Some(machine) = machine() else { return };
    machine.file(SENTINEL, "\u{feff}s\r\n");
    let ended = machine.wait(&PATIENT);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(summary(&ended)["report"], r"C:\ProgramData\bringup-node\report.json");
    assert_eq!(machine.json(REPORT)["phase"], "done");

    fs::remove_dir_all(machine.at("run")).unwrap();
    let child = machine.start(&PATIENT);
    machine.file(SENTINEL, "");
    assert_eq!(Machine::end_of(child), 0, "in a directory that was made later");

    fs::remove_file(machine.at(SENTINEL)).unwrap();
    let child = machine.start(&PATIENT);
    let beside = machine.file("run/cluster-api/new", "");
    fs::rename(beside, machine.at(SENTINEL)).unwrap();
    assert_eq!(Machine::end_of(child), 0, "by rename");
}

#[test]
fn test_51_a_link_outside_is_ignored() {
    let Some(machine) = machine() else { return };
    let outside = machine.file("outside", "");
    fs::create_dir_all(machine.at("run/cluster-api")).unwrap();
    symlink(outside, machine.at(SENTINEL)).unwrap();
    let ended = machine.wait(&["--timeout=50ms"]);
    assert_eq!(ended.code, 11, "{}", ended.err);
    assert!(summary(&ended)["warn"][0].as_str().unwrap().contains("a link out of its directory"));
}

#[test]
fn test_51_a_stale_sentinel_is_ignored_and_a_reboot_keeps_the_deadline() {
    let Some(machine) = machine() else { return };
    let path = machine.file(SENTINEL, "");
    File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH + SOON).unwrap();
    let ended = machine.wait(&["--timeout=50ms"]);
    assert_eq!(ended.code, 11, "{}", ended.err);
    assert!(summary(&ended)["warn"][0].as_str().unwrap().contains("older than this boot"));

    let flags = ["--timeout=10m", "--start-timeout=20m"];
    let child = machine.start(&flags);
    interrupt(&child);
    assert_eq!(Machine::end_of(child), 75);
    // The clock of the last boot was ahead of this boot's clock, and the wait began long ago.
    let mut state = machine.json(STATE);
    state["clock_ms"] = 1_000_000_000_000_u64.into();
    let began: jiff::Timestamp = state["saved"].as_str().unwrap().parse().unwrap();
    let began = began.checked_sub(jiff::SignedDuration::from_mins(11)).unwrap();
    state["saved"] = began.to_string().into();
    fs::write(machine.at(STATE), state.to_string()).unwrap();
    let ended = machine.wait(&flags);
    assert_eq!(ended.code, 11, "11 of 10 min are over: {}", ended.err);
    assert_eq!(machine.json(REPORT)["boots"], 2);
}

#[test]
fn test_51_when_cloudbase_init_has_ended_the_sentinel_gets_time_to_settle() {
    let Some(machine) = machine() else { return };
    let begun = "INFO cloudbaseinit.init [-] Executing plugins for stage 'MAIN':\r\nINFO cloudbaseinit.init [-] Executing plugin 'UserDataPlugin'\r\n";
    machine.file(LOG, begun);
    let ended = machine.wait(&["--timeout=50ms"]);
    assert_eq!(ended.code, 10, "{}", ended.err);

    fs::remove_file(machine.at(STATE)).unwrap();
    machine.file(LOG, &format!("{begun}INFO cloudbaseinit.init [-] Plugins execution done\r\n"));
    let started = Instant::now();
    let ended = machine.wait(&["--timeout=10m", "--settle=1s"]);
    assert_eq!(ended.code, 20, "{}", ended.err);
    assert!(started.elapsed() >= Duration::from_secs(1));

    fs::remove_file(machine.at(STATE)).unwrap();
    machine.file(LOG, &format!("{begun}INFO cloudbaseinit.init [-] Rebooting\r\n"));
    let ended = machine.wait(&["--timeout=50ms", "--settle=0s"]);
    assert_eq!(ended.code, 10, "a reboot is no end: {}", ended.err);

    fs::remove_file(machine.at(STATE)).unwrap();
    let output = r"DEBUG x [-] User_data stdout: b'curl: (6) Could not resolve host: dl.example.com\r\nbye\r\n'";
    machine.file(LOG, &format!("{begun}{output}\r\nINFO x [-] Plugins execution done\r\n"));
    let ended = machine.wait(&PATIENT);
    assert_eq!(ended.code, 25, "{}", ended.err);

    fs::remove_file(machine.at(STATE)).unwrap();
    machine.file(SENTINEL, "");
    assert_eq!(machine.wait(&PATIENT).code, 0);
}

#[test]
fn test_51_a_timeout_before_any_sign_is_11_and_an_interruption_75() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.wait(&["--timeout=50ms"]).code, 11);
    let child = machine.start(&PATIENT);
    interrupt(&child);
    assert_eq!(Machine::end_of(child), 75);
    assert_eq!(machine.json(REPORT)["exit"], 75);
}

#[test]
fn test_51_a_failure_sentinel_ends_with_35_and_brings_its_code() {
    let Some(machine) = machine() else { return };
    machine.file("run/cluster-api/bootstrap-failed.json", r#"{"code":42}"#);
    let ended = machine.wait(&PATIENT);
    assert_eq!(ended.code, 35, "{}", ended.err);
    assert_eq!((&summary(&ended)["code"], &machine.json(REPORT)["code"]), (&42.into(), &42.into()));
}

#[test]
fn test_51_the_result_of_the_aks_scripts_is_read_from_its_bars() {
    let Some(machine) = machine() else { return };
    let aks = [&["--watch=aks"], PATIENT.as_slice()].concat();
    machine.file(
        "AzureData/provision.complete",
        "ExitCode: |35|, Output: |WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE|, Error: |Failed in downloading https://packages.example.com/cni.zip. Error: Unable to connect to the remote server",
    );
    let ended = machine.wait(&aks);
    assert_eq!(ended.code, 24, "{}", ended.err);
    let summary = summary(&ended);
    assert_eq!(
        (&summary["code"], &summary["name"], &summary["exit"]),
        (&35.into(), &"WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE".into(), &24.into())
    );
    fs::remove_file(machine.at(STATE)).unwrap();
    machine.file("AzureData/provision.complete", "0\r\n");
    assert_eq!(machine.wait(&aks).code, 0);
}

#[test]
fn test_51_on_the_machine_itself_a_sentinel_of_an_ordinary_user_is_ignored() {
    let Some(machine) = machine() else { return };
    let path = machine.disk().join(SENTINEL);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    let flags = ["wait", "--timeout=50ms", "--probe=kubelet"];
    let ended = machine.run_without_root(&flags);
    assert_eq!(ended.code, 11, "{}", ended.err);
    assert!(summary(&ended)["warn"][0].as_str().unwrap().contains("belongs to another user"));
    let report = fs::read_to_string(machine.disk().join(REPORT)).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["disk_free"].as_u64().is_some_and(|free| free > 0));
    assert!(report["kubelet"]["healthz"].is_string(), "{report}");
}

#[test]
fn test_51_only_what_waits_is_there() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.run(&["version"]).out, format!("{}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(machine.run(&["report"]).code, 66);
    machine.file(SENTINEL, "");
    machine.file("console", "");
    assert_eq!(machine.wait(&["--console", "--timeout=10m"]).code, 0);
    let console = fs::read_to_string(machine.at("console")).unwrap();
    assert!(console.starts_with("\r\nBRINGUP-NODE/1 ") && console.ends_with("}\r\n"), "{console}");
    let report: Value = serde_json::from_str(&machine.run(&["report", "--json"]).out).unwrap();
    assert_eq!(report["exit"], 0);
    for wrong in [["provision"], ["nothing"]] {
        assert_eq!(machine.run(&wrong).code, 64);
    }
    assert_eq!(machine.wait(&["--watch=cloud-init"]).code, 64);
}
