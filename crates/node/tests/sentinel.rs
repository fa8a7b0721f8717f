//! `wait`: the events that end it.

mod common;
mod sentinel_common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use common::requirement::skip;
use common::{Ended, Killed, Machine};
use sentinel_common::*;

#[test]
fn test_44_a_sentinel_that_is_there_ends_the_wait_at_once() {
    let machine = Machine::new();
    machine.file(SENTINEL, "success\r\n");
    // There is no second check: the first one ends the wait.
    let mut command = machine.command(&[&["wait"], PATIENT.as_slice()].concat());
    command.env("BRINGUP_NODE_TEST_NO_POLL", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Ended::of_child(command.spawn().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.err);
    let summary = summary(&ended);
    assert_eq!((&summary["exit"], &summary["name"]), (&0.into(), &"SUCCEEDED".into()));
    assert_eq!(machine.json(REPORT)["phase"], "done");
}

#[test]
fn test_44_a_sentinel_that_comes_later_ends_the_wait() {
    let write: [fn(&Machine); 3] = [
        // In an existing directory.
        |machine| {
            machine.file(SENTINEL, "");
        },
        // In a directory that is created later.
        |machine| {
            machine.file(SENTINEL, "");
        },
        // By a rename.
        |machine| {
            let beside = machine.file("/run/cluster-api/.new", "");
            fs::rename(beside, machine.at(SENTINEL)).unwrap();
        },
    ];
    for (case, write) in write.iter().enumerate() {
        let machine = Machine::new();
        let folder = if case == 1 { "/run" } else { "/run/cluster-api" };
        fs::create_dir_all(machine.at(folder)).unwrap();
        let child = start(&machine, &PATIENT);
        write(&machine);
        assert_eq!(end_of(child).code, 0, "case {case}");
    }
}

#[test]
fn test_44_a_link_outside_is_ignored_until_a_file_takes_its_place() {
    let machine = Machine::new();
    let outside = machine.file("/tmp/outside", "");
    fs::create_dir_all(machine.at("/run/cluster-api")).unwrap();
    symlink(outside, machine.at(SENTINEL)).unwrap();
    let ended = wait(&machine, &["--timeout=50ms"]);
    assert_eq!(ended.code, 11, "{}", ended.err);
    assert!(warned(&ended, "a link out of its directory"), "{}", ended.out);
    let child = start(&machine, &PATIENT);
    let beside = machine.file("/run/cluster-api/.new", "");
    fs::rename(beside, machine.at(SENTINEL)).unwrap();
    assert_eq!(end_of(child).code, 0);
}

#[test]
fn test_44_of_several_sentinels_one_is_enough() {
    let machine = Machine::new();
    let second = machine.file("/opt/done", "");
    let first = flag("sentinel", &machine.at("/opt/never"));
    let flags = [first.as_str(), &flag("sentinel", &second)];
    assert_eq!(wait(&machine, &[&flags, PATIENT.as_slice()].concat()).code, 0);
}

#[test]
fn test_45_a_stale_sentinel_on_a_disk_is_ignored() {
    let (machine, folder) = (Machine::new(), on_disk());
    let path = folder.path().join("sentinel");
    write_old(&path);
    let ended = wait(&machine, &[&flag("sentinel", &path), "--timeout=50ms"]);
    assert_eq!(ended.code, 11, "{}", ended.err);
    assert!(warned(&ended, "older than this boot"), "{}", ended.out);
    // The same file counts if it is written in this boot.
    let machine = Machine::new();
    fs::write(&path, "").unwrap();
    assert_eq!(wait(&machine, &[&flag("sentinel", &path), "--timeout=10m"]).code, 0);
}

#[test]
fn test_45_in_memory_nothing_is_stale() {
    let memory = Path::new("/dev/shm");
    let kind = Command::new("stat").args(["-f", "-c", "%T", "/dev/shm"]).output();
    let kind = kind.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let folder = tempfile::tempdir_in(memory);
    let (Ok("tmpfs"), Ok(folder)) = (kind.as_deref(), folder) else {
        skip("tmpfs", "/dev/shm is no file system in memory that can be written to");
        return;
    };
    let (machine, path) = (Machine::new(), folder.path().join("sentinel"));
    write_old(&path);
    assert_eq!(wait(&machine, &[&flag("sentinel", &path), "--timeout=50ms"]).code, 0);
}

#[test]
fn test_45_a_reboot_in_the_middle_keeps_the_deadline() {
    let machine = Machine::new();
    let flags = ["--timeout=10m", "--start-timeout=20m"];
    let child = start(&machine, &flags);
    terminate(&child.0);
    assert_eq!(end_of(child).code, 75);
    move_back(&machine, 300);
    let deadline = |machine: &Machine| -> jiff::Timestamp {
        machine.json(REPORT)["deadline"].as_str().unwrap().parse().unwrap()
    };
    let first = deadline(&machine);

    machine.file("/proc/sys/kernel/random/boot_id", "another\n");
    let child = Killed(machine.start(&[&["wait"], flags.as_slice()].concat()));
    until(|| machine.json(STATE)["boots"] == 2);
    terminate(&child.0);
    assert_eq!(end_of(child).code, 75);
    let moved = first.duration_since(deadline(&machine));
    assert_eq!(moved.as_secs(), 300, "only the test itself has moved it");
    assert!(machine.json(REPORT)["waited_ms"].as_u64().unwrap() >= 300_000);

    machine.file("/proc/sys/kernel/random/boot_id", "a third\n");
    move_back(&machine, 400);
    let ended = wait(&machine, &flags);
    assert_eq!(ended.code, 11, "700 of 600 s are over: {}", ended.err);
    assert_eq!(machine.json(REPORT)["boots"], 3);
}

#[test]
fn test_45_a_success_is_remembered_over_a_reboot() {
    let machine = Machine::new();
    machine.file(SENTINEL, "");
    assert_eq!(wait(&machine, &PATIENT).code, 0);
    machine.remove(SENTINEL);
    machine.file("/proc/sys/kernel/random/boot_id", "another\n");
    assert_eq!(wait(&machine, &["--timeout=50ms"]).code, 0);
}

#[test]
fn test_45_a_copied_disk_does_not_bring_its_success_along() {
    let machine = Machine::new();
    machine.file(SENTINEL, "");
    assert_eq!(wait(&machine, &PATIENT).code, 0);
    machine.remove(SENTINEL);
    machine.file("/sys/class/dmi/id/product_uuid", "BBBB-2\n");
    assert_eq!(wait(&machine, &["--timeout=50ms"]).code, 11);
}

#[test]
fn test_47_a_timeout_before_any_sign_is_11_and_after_signs_10() {
    let machine = Machine::new();
    for flags in [["--timeout=50ms", "--settle=0s"], ["--start-timeout=50ms", "--settle=0s"]] {
        let _ = fs::remove_file(machine.at(STATE));
        let ended = wait(&machine, &flags);
        assert_eq!(ended.code, 11, "{}", ended.err);
        assert_eq!(summary(&ended)["cause"], "ProvisionerNeverStarted");
    }
    let signs: [fn(&Machine); 3] = [
        |machine| {
            machine.file(RUNCMD, "#!/bin/sh\n");
        },
        |machine| {
            machine.file("/proc/77/comm", "kubeadm\n");
        },
        |machine| {
            machine.file(OUTPUT, "[preflight] Running pre-flight checks\n");
        },
    ];
    for sign in signs {
        let machine = Machine::new();
        sign(&machine);
        let ended = wait(&machine, &["--timeout=50ms", "--start-timeout=1ms"]);
        assert_eq!(ended.code, 10, "{}", ended.err);
        assert_eq!(summary(&ended)["cause"], "TimeBudgetExhausted");
    }
}

#[test]
fn test_47_a_signal_writes_the_report_and_ends_with_75() {
    let machine = Machine::new();
    let child = start(&machine, &PATIENT);
    terminate(&child.0);
    let ended = end_of(child);
    assert_eq!(ended.code, 75, "{}", ended.err);
    assert_eq!(summary(&ended)["name"], "INTERRUPTED");
    assert_eq!(machine.json(REPORT)["exit"], 75);
    // This is no verdict: a new start continues the wait.
    machine.file(SENTINEL, "");
    assert_eq!(wait(&machine, &PATIENT).code, 0);
}

#[test]
fn test_47_a_limit_above_85_minutes_is_refused() {
    let machine = Machine::new();
    let ended = wait(&machine, &["--timeout=86m"]);
    assert_eq!((ended.code, ended.out.as_str()), (64, ""));
    assert!(ended.err.contains("--unsafe"), "{}", ended.err);
    machine.file(SENTINEL, "");
    assert_eq!(wait(&machine, &["--timeout=86m", "--unsafe"]).code, 0);
}
