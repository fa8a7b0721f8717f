//! The VM extension with a simulated guest agent: sequence numbers, reboots, updates and removal.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;
mod extension;

use std::fs;

use extension::*;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const MACHINE: &str = "/sys/class/dmi/id/product_uuid";

/// The stored state of the wait for a sequence number.
fn memory(agent: &Agent, number: u64) -> serde_json::Value {
    agent.machine.json(&format!("{FOLDER}/wait-{number}.json"))
}

#[test]
fn test_06_every_number_is_processed_and_older_files_stay_as_they_are() {
    let agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    let mut older = Vec::new();
    for number in [0, 1, 5, 2] {
        handler.settings(number, &patient());
        assert_eq!(agent.call(&handler, "enable", number).code, 0);
        assert_eq!(handler.status(number).unwrap().word, "transitioning");
        assert_eq!(agent.record()["number"], number);
        until(|| agent.machine.at(&format!("{FOLDER}/wait-{number}.json")).exists());
        agent.is_waited_for_once();
        for (older, bytes) in &older {
            assert_eq!(handler.status_bytes(*older), *bytes, "of {older}, while it is {number}");
        }
        // From now on, this status belongs to a sequence number that is no longer current.
        if number != 2 {
            assert_eq!(agent.call(&handler, "disable", number).code, 0);
            older.push((number, handler.status_bytes(number)));
        }
    }
    agent.machine.file(SENTINEL, "");
    handler.becomes(2, "success");
    agent.is_quiet();
    for (older, bytes) in &older {
        assert_eq!(handler.status_bytes(*older), *bytes, "of {older}");
    }
    assert_eq!(fs::read_to_string(handler.root.join("mrseq")).unwrap(), "2");
}

#[test]
fn test_06_another_number_ends_the_waiter_of_the_last_one() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 3, &patient());
    let first = agent.waiter();
    handler.settings(4, &patient());
    assert_eq!(agent.call(&handler, "enable", 4).code, 0);
    until(|| !memory(&agent, 4).is_null());
    agent.is_waited_for_once();
    assert_ne!(agent.waiter(), first);
    // A sequence number that is used again is not done.
    agent.machine.file(SENTINEL, "");
    handler.becomes(4, "success");
    agent.is_quiet();
    agent.machine.remove(SENTINEL);
    assert_eq!(agent.call(&handler, "enable", 3).code, 0);
    assert_eq!(handler.status(3).unwrap().word, "transitioning");
    agent.machine.file(SENTINEL, "");
    handler.becomes(3, "success");
}

#[test]
fn test_07_a_reboot_keeps_the_deadline_and_a_verdict() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    let (deadline, began) =
        (agent.record()["deadline"].clone(), memory(&agent, 0)["began"].clone());
    assert!(deadline.is_string() && began.is_string());
    agent.kill_all();
    agent.machine.file(BOOT, "another\n");
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    until(|| memory(&agent, 0)["boots"] == 2);
    assert_eq!((&agent.record()["deadline"], &memory(&agent, 0)["began"]), (&deadline, &began));
    agent.machine.file(SENTINEL, "");
    handler.becomes(0, "success");
    agent.is_quiet();

    let bytes = handler.status_bytes(0);
    agent.machine.remove(SENTINEL);
    agent.machine.file(BOOT, "a third\n");
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status_bytes(0), bytes);
    assert!(agent.processes("wait").is_empty());
}

#[test]
fn test_07_on_another_machine_it_is_another_wait() {
    let agent = Agent::new();
    agent.machine.file(SENTINEL, "");
    let handler = agent.add("1.0.0.0", 0, &patient());
    handler.becomes(0, "success");
    agent.is_quiet();
    agent.machine.remove(SENTINEL);
    agent.machine.file(MACHINE, "BBBB-2\n");
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status(0).unwrap().word, "transitioning");
    agent.waiter();
    assert_eq!(agent.record()["phase"], "waiting");
    let aside = agent.machine.json(&format!("{RECORD}.other-machine"));
    assert_eq!(aside["phase"], "done");
}

/// Replaces a command of an old package with one that fails.
fn break_command(handler: &Handler, command: &str) {
    let path = handler.root.join("HandlerManifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace(&format!("\"bin/ext {command}\""), "\"exit 1\"");
    fs::write(&path, text).unwrap();
}

#[test]
fn test_08_an_update_and_a_downgrade_while_it_waits_keep_the_deadline() {
    let agent = Agent::new();
    let old = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    let deadline = agent.record()["deadline"].clone();
    let began = memory(&agent, 0)["began"].clone();

    let new = agent.unpack("1.0.1.0");
    agent.replace(&old, &new, &new, 0);
    let back = agent.unpack("1.0.0.0");
    // In a downgrade, `update` runs in the old folder, which is then deleted.
    agent.replace(&new, &back, &new, 0);
    agent.waiter();
    assert!(!new.root.exists());
    assert_eq!((&agent.record()["deadline"], &memory(&agent, 0)["began"]), (&deadline, &began));
    assert!(!agent.machine.at(&format!("{FOLDER}/updating")).exists());

    agent.machine.file(SENTINEL, "");
    back.becomes(0, "success");
    agent.is_quiet();
}

#[test]
fn test_08_an_old_version_that_does_not_let_go_gives_way() {
    for broken in [["disable"].as_slice(), &["disable", "uninstall"]] {
        let agent = Agent::new();
        let old = agent.add("1.0.0.0", 0, &patient());
        let waiter = agent.waiter();
        let deadline = agent.record()["deadline"].clone();
        for command in broken {
            break_command(&old, command);
        }
        let new = agent.unpack("1.0.1.0");
        agent.replace(&old, &new, &new, 0);
        assert!(!old.root.exists());
        assert_ne!(agent.waiter(), waiter);
        assert_eq!(agent.record()["deadline"], deadline);
        agent.machine.file(SENTINEL, "");
        new.becomes(0, "success");
        agent.is_quiet();
        assert!(!old.root.exists(), "it is not made again");
    }
}

#[test]
fn test_08_a_verdict_survives_an_update() {
    let agent = Agent::new();
    agent.machine.file(SENTINEL, "");
    let old = agent.add("1.0.0.0", 0, &patient());
    old.becomes(0, "success");
    agent.is_quiet();
    agent.machine.remove(SENTINEL);
    let bytes = old.status_bytes(0);
    let new = agent.unpack("1.0.1.0");
    agent.replace(&old, &new, &new, 0);
    assert_eq!(new.status_bytes(0), bytes);
    assert!(agent.processes("wait").is_empty());
}

#[test]
fn test_08_a_mark_that_an_update_left_behind_does_not_count_for_ever() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    let mark = format!("{FOLDER}/updating");
    assert_eq!(agent.call(&handler, "update", 0).code, 0);
    assert_eq!(agent.call(&handler, "uninstall", 0).code, 0);
    assert!(agent.machine.at(&mark).exists());
    let hours_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    fs::File::open(agent.machine.at(&mark)).unwrap().set_modified(hours_ago).unwrap();
    assert_eq!(agent.call(&handler, "uninstall", 0).code, 0);
    assert!(!agent.machine.at(FOLDER).exists());
}

#[test]
fn test_09_removal_leaves_logs_only_and_can_be_repeated() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    for _ in 0..2 {
        assert_eq!(agent.call(&handler, "disable", 0).code, 0);
        assert!(agent.processes("guard").is_empty() && agent.processes("wait").is_empty());
        assert_eq!(handler.status(0).unwrap().word, "transitioning", "disable tells nothing");
    }
    for _ in 0..2 {
        assert_eq!(agent.call(&handler, "uninstall", 0).code, 0);
        assert!(!agent.machine.at("/var/lib/bringup-node").exists());
    }
    fs::remove_dir_all(&handler.root).unwrap();
    let left = agent.machine.at(&format!("/var/log/azure/{NAME}/extension.log"));
    assert!(left.exists());
}

#[test]
fn test_09_what_others_remember_stays() {
    let agent = Agent::new();
    let run = agent.machine.file("/var/lib/bringup-node/run.json", "{}");
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    assert_eq!(agent.call(&handler, "disable", 0).code, 0);
    assert_eq!(agent.call(&handler, "uninstall", 0).code, 0);
    assert!(run.exists() && !agent.machine.at(FOLDER).exists());
}

#[test]
fn test_09_removal_works_on_a_full_disk() {
    let mut agent = Agent::new();
    let Some(disk) = agent.small_disk(&agent.machine.at("/var/lib/bringup-node")) else { return };
    let handler = agent.add("1.0.0.0", 0, &patient());
    until(|| agent.processes("wait").len() == 1);
    disk.fill();
    for _ in 0..2 {
        assert_eq!(agent.call(&handler, "update", 0).code, 0);
        assert_eq!(agent.call(&handler, "disable", 0).code, 0);
        assert_eq!(agent.call(&handler, "uninstall", 0).code, 0);
    }
    assert!(agent.processes("guard").is_empty() && agent.processes("wait").is_empty());
}
