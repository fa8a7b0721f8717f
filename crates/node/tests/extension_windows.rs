//! The VM extension on Windows: the real program with wine, in the folders of the guest agent for Windows.
//! Without a cross compiler or wine, these tests are skipped, or fail with `BRINGUP_REQUIRE=windows`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;
mod extension;
#[path = "windows/machine.rs"]
mod machine;
#[path = "extension/windows_agent.rs"]
mod windows_agent;

use std::fs;

use extension::{agent, package, patient, until};
use machine::{LOG, SENTINEL};
use serde_json::json;
use windows_agent::*;

#[test]
fn test_12_enable_returns_and_the_sentinel_makes_it_a_success() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.add("1.0.0.0", 0, &patient());
    assert_eq!(handler.status(0).unwrap().word, "transitioning");
    let waiter = agent.waiter();
    assert_eq!(agent.call(&handler, "enable", Some(0)), 0);
    assert_eq!(agent.waiter(), waiter);

    agent.machine.file(SENTINEL, "");
    let status = handler.becomes(0, "success");
    assert_eq!(status.code, 0);
    assert!(status.message.ends_with("\"end\":1}"), "{}", status.message);
    agent.is_quiet();

    let bytes = handler.status_bytes(0);
    fs::remove_file(agent.machine.at(SENTINEL)).unwrap();
    for _ in 0..2 {
        assert_eq!(agent.call(&handler, "enable", Some(0)), 0);
        assert!(agent.processes("guard").is_empty());
        assert_eq!(handler.status_bytes(0), bytes);
    }
    fs::remove_file(handler.status_path(0)).unwrap();
    assert_eq!(agent.call(&handler, "enable", Some(0)), 0);
    assert_eq!(handler.status_bytes(0), bytes);
}

#[test]
fn test_12_cloudbase_init_that_ends_without_the_sentinel_is_an_error_with_its_cause() {
    let Some(agent) = Agent::new() else { return };
    let output = r"DEBUG x [-] User_data stdout: b'curl: (6) Could not resolve host: dl.example.com\r\nbye\r\n'";
    agent.machine.file(LOG, &format!("INFO x [-] Executing plugin 'UserDataPlugin'\r\n{output}\r\nINFO x [-] Plugins execution done\r\n"));
    let handler = agent.add("1.0.0.0", 0, &patient());
    let status = handler.becomes(0, "error");
    assert_eq!((status.code, status.substatus.clone().unwrap().0.as_str()), (25, "DnsFailure"));
    assert_eq!(status.node().cause, Some(bringup_contract::Cause::DnsFailure));
}

#[test]
fn test_12_numbers_come_from_the_variable_or_the_registry_as_text_or_number() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.unpack("1.0.0.0");
    for (number, kind) in [(0, None), (1, Some("REG_SZ")), (5, Some("REG_DWORD")), (2, None)] {
        handler.settings(number, &patient());
        let told = match kind {
            Some(kind) => {
                agent.register("1.0.0.0", kind, &number.to_string());
                None
            }
            None => Some(number),
        };
        assert_eq!(agent.call(&handler, "enable", told), 0);
        assert_eq!(agent.number(), number);
        agent.waiter();
    }
    agent.machine.file(SENTINEL, "");
    handler.becomes(2, "success");
    for older in [0, 1, 5] {
        assert_eq!(handler.status(older).unwrap().word, "transitioning");
    }
}

#[test]
fn test_12_a_reboot_keeps_the_deadline() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    let (deadline, began) =
        (agent.json("state.json")["deadline"].clone(), agent.memory(0)["began"].clone());
    agent.kill_all();
    assert_eq!(agent.call(&handler, "enable", Some(0)), 0);
    agent.waiter();
    assert_eq!(
        (&agent.json("state.json")["deadline"], &agent.memory(0)["began"]),
        (&deadline, &began)
    );
}

#[test]
fn test_12_an_update_keeps_the_deadline_and_the_old_root_can_be_deleted() {
    let Some(agent) = Agent::new() else { return };
    let old = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    let deadline = agent.json("state.json")["deadline"].clone();
    let new = agent.unpack("1.0.1.0");
    agent.replace(&old, &new, 0);
    agent.waiter();
    assert_eq!(agent.json("state.json")["deadline"], deadline);

    // If `disable` of the old version fails, its `uninstall` ends the waiter.
    let path = new.root.join("HandlerManifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"ext.cmd disable\"", "\"exit 1\"")).unwrap();
    let newer = agent.unpack("1.0.2.0");
    agent.replace(&new, &newer, 0);
    agent.waiter();
    assert_eq!(agent.json("state.json")["deadline"], deadline);
    agent.machine.file(SENTINEL, "");
    newer.becomes(0, "success");
    agent.is_quiet();
}

#[test]
fn test_12_removal_leaves_logs_only_and_can_be_repeated() {
    let Some(agent) = Agent::new() else { return };
    let run = agent.machine.file("ProgramData/bringup-node/run.json", "{}");
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    for _ in 0..2 {
        assert_eq!(agent.call(&handler, "disable", Some(0)), 0);
        agent.is_quiet();
        assert_eq!(agent.call(&handler, "uninstall", Some(0)), 0);
    }
    agent.delete(&handler);
    assert!(run.exists() && !agent.machine.at(FOLDER).exists());
    let log = format!("WindowsAzure/Logs/Plugins/{NAME}/1.0.0.0/extension.log");
    assert!(agent.machine.disk().join(log).exists());
}

#[test]
fn test_12_settings_that_cannot_be_used_are_told() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.unpack("1.0.0.0");
    handler.raw_settings(0, "");
    assert_eq!(agent.call(&handler, "enable", Some(0)), 64);
    let envelope = json!({ "runtimeSettings": [{ "handlerSettings": {
        "publicSettings": {}, "protectedSettings": "AAAA", "protectedSettingsCertThumbprint": "AB",
    } }] });
    let wrong = [
        (1, "{".to_owned(), "the settings cannot be read"),
        (2, settings(&json!({ "timeout": "90m" })), "more than 85m"),
        (3, envelope.to_string(), "the protected settings cannot be read"),
    ];
    for (number, text, why) in wrong {
        handler.raw_settings(number, &text);
        assert_eq!(agent.call(&handler, "enable", Some(number)), 0);
        let status = handler.status(number).unwrap();
        assert_eq!((status.word.as_str(), status.code), ("error", 64));
        assert!(status.message.contains(why), "{}", status.message);
        assert!(agent.processes("guard").is_empty());
    }
    let mut unknown = patient();
    unknown["tiemout"] = "1s".into();
    handler.settings(4, &unknown);
    assert_eq!(agent.call(&handler, "enable", Some(4)), 0);
    assert!(agent.printed().contains("unknown settings are ignored: tiemout"));
}

fn settings(public: &serde_json::Value) -> String {
    json!({ "runtimeSettings": [{ "handlerSettings": { "publicSettings": public } }] }).to_string()
}

#[test]
fn test_12_a_waiter_that_is_killed_comes_back_and_the_fourth_death_is_an_error() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    (1..=4).for_each(|deaths| agent.waiter_dies(deaths));
    let status = handler.becomes(0, "error");
    assert_eq!(status.code, 70, "{}", status.message);
    agent.is_quiet();
}

#[test]
fn test_12_two_enables_at_once_start_one_waiter() {
    let Some(agent) = Agent::new() else { return };
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &patient());
    // Only one process of wine itself may start at a time.
    assert_eq!(agent.call(&handler, "install", Some(0)), 0);
    std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..2).map(|_| scope.spawn(|| agent.call(&handler, "enable", Some(0)))).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), 0);
        }
    });
    agent.waiter();
    until(|| agent.processes("guard").len() == 1);
}

#[test]
fn test_12_on_the_machine_itself_a_service_waits_and_goes_with_the_extension() {
    let Some(mut agent) = Agent::new() else { return };
    agent.bare = true;
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    assert_eq!(agent.processes("service").len(), 1);
    // The service has no guard process that could be ended with it.
    assert!(agent.processes("guard").is_empty());
    assert_eq!(agent.call(&handler, "disable", Some(0)), 0);
    agent.is_quiet();
    // Without a wait in progress, the service ends at once.
    handler.settings(1, &json!({ "timeout": "50ms" }));
    assert_eq!(agent.call(&handler, "enable", Some(1)), 0);
    assert_eq!(handler.becomes(1, "error").code, 11);
    agent.is_quiet();
    assert_eq!(agent.call(&handler, "uninstall", Some(1)), 0);
    agent.delete(&handler);
    assert!(!agent.machine.disk().join(FOLDER).exists());
}
