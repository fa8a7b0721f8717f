//! The VM extension with a simulated guest agent: invalid and secret settings, killed processes, full disks,
//! hanging programs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;
mod extension;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::Killed;
use common::requirement::{missing_program, skip};
use extension::*;
use serde_json::{Value, json};

const SECRET: &str = "correct-horse-battery-staple";

/// Enables settings that cannot be used, and returns the status.
fn refused(public: &Value) -> Status {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, public);
    let status = handler.status(0).unwrap();
    assert_eq!((status.word.as_str(), status.code), ("error", 64), "{public}");
    assert!(agent.processes("guard").is_empty());
    // The next call reports the same, even if the status file was deleted.
    let bytes = handler.status_bytes(0);
    fs::remove_file(handler.status_path(0)).unwrap();
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status_bytes(0), bytes);
    status
}

#[test]
fn test_10_without_settings_enable_fails_instead_of_a_silent_success() {
    let agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.raw_settings(0, "");
    for _ in 0..2 {
        let ended = agent.call(&handler, "enable", 0);
        assert_eq!(ended.code, 64);
        assert!(ended.err.contains("there are no settings"), "{}", ended.err);
    }
    assert!(agent.processes("guard").is_empty());
    // Empty settings are valid settings.
    handler.settings(1, &json!({}));
    assert_eq!(agent.call(&handler, "enable", 1).code, 0);
    until(|| handler.status(1).unwrap().message.contains("s of 1200 s are over"));
}

#[test]
fn test_10_broken_settings_and_values_are_an_error_in_the_status() {
    let agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.raw_settings(0, r#"{"runtimeSettings":[{"handlerSettings":"#);
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    let status = handler.status(0).unwrap();
    assert_eq!((status.word.as_str(), status.code), ("error", 64));
    assert!(status.message.contains("the settings cannot be read: EOF"), "{}", status.message);

    let status = refused(&json!({ "timeout": "90m" }));
    assert!(status.message.contains("more than 85m"), "{}", status.message);
    assert_eq!(status.node().exit, Some(64));
    for wrong in [json!({ "timeout": "soon" }), json!({ "watch": "x" }), json!({ "settle": {} })] {
        refused(&wrong);
    }
}

#[test]
fn test_10_an_unknown_key_is_named_and_ignored() {
    let agent = Agent::new();
    let mut settings = patient();
    settings["tiemout"] = "1s".into();
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &settings);
    let ended = agent.call(&handler, "enable", 0);
    assert_eq!((ended.code, ended.out.as_str()), (0, "unknown settings are ignored: tiemout\n"));
    assert!(handler.status(0).unwrap().message.contains("tiemout"));
    agent.machine.file(SENTINEL, "");
    let status = handler.becomes(0, "success");
    assert!(status.message.contains("unknown settings are ignored: tiemout\nBRINGUP-NODE/1 {"));
}

/// Creates a key in the guest agent's folder; returns the path of its certificate.
fn key(agent: &Agent, name: &str) -> PathBuf {
    let folder = agent.machine.at("/var/lib/waagent");
    fs::create_dir_all(&folder).unwrap();
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]);
    openssl.arg("-keyout").arg(folder.join(format!("{name}.prv")));
    openssl.arg("-out").arg(folder.join(format!("{name}.crt")));
    assert!(openssl.stderr(Stdio::null()).status().unwrap().success());
    folder.join(format!("{name}.crt"))
}

/// Settings with protected values, encrypted like Azure's.
fn protected(
    certificate: &Path,
    cipher: &str,
    name: &str,
    public: &Value,
    secret: &Value,
) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["cms", "-encrypt", "-binary", "-outform", "DER", cipher]).arg(certificate);
    openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = openssl.spawn().unwrap();
    child.stdin.take().unwrap().write_all(secret.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{cipher}");
    json!({ "runtimeSettings": [{ "handlerSettings": {
        "publicSettings": public,
        "protectedSettings": STANDARD.encode(output.stdout),
        "protectedSettingsCertThumbprint": name,
    } }] })
    .to_string()
}

fn has_openssl() -> bool {
    let missing = missing_program(&["openssl"]);
    if missing.is_some() {
        skip("openssl", "openssl is not installed, which encrypts protected settings");
    }
    missing.is_none()
}

#[test]
fn test_10_protected_settings_go_first_and_are_seen_nowhere() {
    if !has_openssl() {
        return;
    }
    for (number, cipher) in [(0, "-aes-256-cbc"), (1, "-des3")] {
        let agent = Agent::new();
        let certificate = key(&agent, "AB12");
        let handler = agent.unpack("1.0.0.0");
        let secret = json!({ "timeout": "11m", "startTimeout": "11m", "storageKey": SECRET });
        let public = json!({ "timeout": "1s", "startTimeout": "1s" });
        handler.raw_settings(number, &protected(&certificate, cipher, "AB12", &public, &secret));
        assert_eq!(agent.call(&handler, "enable", number).code, 0);
        until(|| handler.status(number).unwrap().message.contains("s of 660 s are over"));
        let waiter = agent.waiter();
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{waiter}/{file}")).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{file}");
        }
        agent.machine.file(SENTINEL, "");
        handler.becomes(number, "success");
        agent.is_quiet();
        let everything = agent.machine.everything_but(&handler.root.join("bin/bringup-node-amd64"));
        assert!(!everything.contains(SECRET) && everything.contains("storageKey"));
    }
}

#[test]
fn test_10_a_protected_value_that_is_wrong_is_not_quoted_and_a_wrong_key_is_an_error() {
    if !has_openssl() {
        return;
    }
    let agent = Agent::new();
    let certificate = key(&agent, "AB12");
    key(&agent, "CD34");
    let handler = agent.unpack("1.0.0.0");
    let wrong =
        protected(&certificate, "-aes-256-cbc", "AB12", &json!({}), &json!({ "timeout": SECRET }));
    handler.raw_settings(0, &wrong);
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    let status = handler.status(0).unwrap();
    assert_eq!((status.word.as_str(), status.code), ("error", 64));
    assert!(status.message.contains("setting timeout: not a duration"), "{}", status.message);

    for (number, name) in [(1, "CD34"), (2, "EF56"), (3, "../AB12")] {
        let text =
            protected(&certificate, "-aes-256-cbc", name, &json!({}), &json!({ "settle": SECRET }));
        handler.raw_settings(number, &text);
        assert_eq!(agent.call(&handler, "enable", number).code, 0);
        let status = handler.status(number).unwrap();
        assert_eq!((status.word.as_str(), status.code), ("error", 64), "{name}");
        assert!(status.message.contains("protected settings cannot be read"), "{}", status.message);
    }
    assert!(
        !agent
            .machine
            .everything_but(&handler.root.join("bin/bringup-node-amd64"))
            .contains(SECRET)
    );
}

#[test]
fn test_11_a_waiter_that_is_killed_comes_back_with_the_same_deadline() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    let first = agent.waiter();
    let began = agent.machine.json(&format!("{FOLDER}/wait-0.json"))["began"].clone();
    kill(first);
    until(|| agent.processes("wait").iter().any(|pid| *pid != first));
    assert_eq!(agent.machine.json(&format!("{FOLDER}/wait-0.json"))["began"], began);
    until(|| agent.record()["deaths"] == 1);
    agent.machine.file(SENTINEL, "");
    handler.becomes(0, "success");
    agent.is_quiet();
}

#[test]
fn test_11_the_fourth_death_is_an_error() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    (1..=4).for_each(|deaths| agent.waiter_dies(deaths));
    let status = handler.becomes(0, "error");
    assert_eq!((status.code, status.substatus.clone().unwrap().0.as_str()), (70, "INTERNAL"));
    assert!(status.message.contains("killed 4 times"), "{}", status.message);
    agent.is_quiet();
    // This is a final status like any other.
    let bytes = handler.status_bytes(0);
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status_bytes(0), bytes);
}

#[test]
fn test_11_a_guard_that_is_killed_takes_nothing_with_it() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    let waiter = agent.waiter();
    agent.processes("guard").into_iter().for_each(kill);
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(agent.waiter(), waiter);
    agent.machine.file(SENTINEL, "");
    handler.becomes(0, "success");
}

#[test]
fn test_11_on_a_full_disk_the_verdict_waits_for_space() {
    let mut agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &patient());
    let Some(disk) = agent.small_disk(&handler.root.join("status")) else { return };
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    agent.waiter();
    disk.fill();
    let seen = || fs::read_to_string(disk.0.join("0.status")).unwrap();
    agent.machine.file(SENTINEL, "");
    until(|| agent.record()["phase"] == "done");
    assert_eq!(read_status(&seen()).word, "transitioning", "the last one that was whole");
    disk.make_space();
    until(|| read_status(&seen()).word == "success");
    agent.is_quiet();
}

#[test]
fn test_11_enable_on_a_full_disk_waits_all_the_same() {
    let mut agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &patient());
    let Some(disk) = agent.small_disk(&agent.machine.at("/var/lib/bringup-node")) else { return };
    disk.fill();
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status(0).unwrap().word, "transitioning");
    until(|| agent.processes("wait").len() == 1);
    agent.machine.file(SENTINEL, "");
    handler.becomes(0, "success");
    disk.make_space();
    until(|| disk.0.join("ext/state.json").exists());
    agent.is_quiet();
}

#[test]
fn test_11_who_reads_the_status_never_sees_a_part_of_it() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    fs::create_dir_all(agent.machine.at("/run/cluster-api")).unwrap();
    let mut changes = 0;
    let mut last = Vec::new();
    for round in 0..1_000 {
        // Each file wakes the waiter, which then updates the status.
        agent.machine.file(&format!("/run/cluster-api/{round}"), "");
        let bytes = handler.status_bytes(0);
        assert_eq!(read_status(std::str::from_utf8(&bytes).unwrap()).word, "transitioning");
        changes += usize::from(bytes != last);
        last = bytes;
    }
    assert!(changes > 0);
    until(|| handler.status_bytes(0) != last);
}

#[test]
fn test_11_two_enables_at_once_start_one_waiter() {
    let agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &patient());
    std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..2).map(|_| scope.spawn(|| agent.call(&handler, "enable", 0).code)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), 0);
        }
    });
    agent.waiter();
    agent.is_waited_for_once();
}

fn systemd_run(agent: &Agent, script: &str) {
    fs::create_dir_all(agent.machine.at("/run/systemd/system")).unwrap();
    let path = agent.machine.file("/usr/bin/systemd-run", script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn test_11_a_systemd_that_hangs_or_fails_does_not_keep_enable() {
    for hangs in [true, false] {
        let agent = Agent::new();
        // Longer than the limit for systemd, and shorter than the limit of `enable`.
        let passes = agent.machine.time_passes(4_000);
        let hung = agent.machine.at("/hung").display().to_string();
        let script = if hangs {
            format!("#!/bin/sh\necho $$ >'{hung}'\n{passes}\nsleep 1000\n")
        } else {
            "#!/bin/sh\nexit 1\n".to_owned()
        };
        systemd_run(&agent, &script);
        let handler = agent.unpack("1.0.0.0");
        handler.settings(0, &patient());
        assert_eq!(agent.call(&handler, "enable", 0).code, 0);
        // The hanging program was killed, and did not end by itself.
        assert_eq!(agent.machine.at("/hung").exists(), hangs);
        let pid = agent.machine.read("/hung");
        assert!(!hangs || !Path::new(&format!("/proc/{}", pid.trim())).exists(), "it lives");
        agent.waiter();
        agent.machine.file(SENTINEL, "");
        handler.becomes(0, "success");
    }
}

#[test]
fn test_11_with_systemd_it_waits_in_a_unit_that_is_started_again() {
    let agent = Agent::new();
    let script = "#!/bin/sh\necho \"$@\" >\"$BRINGUP_NODE_ROOT/asked\"\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nsetsid \"$@\" >/dev/null 2>&1 &\n# It is away when it leads a session.\nwhile read -r _ _ _ _ _ session _ </proc/$!/stat && [ \"$session\" != $! ]; do :; done\n";
    systemd_run(&agent, script);
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    let asked = agent.machine.read("/asked");
    for word in
        ["--unit bringup-node-ext", "Restart=on-failure", "--collect", "--working-directory=/"]
    {
        assert!(asked.contains(word), "{word} is not in {asked}");
    }
    agent.machine.file(SENTINEL, "");
    handler.becomes(0, "success");
    agent.is_quiet();
}

/// Runs itself as the test that is killed.
#[test]
fn a_test_that_is_killed_leaves_no_process_and_no_folder() {
    const VICTIM: &str = "BRINGUP_TEST_VICTIM";
    if std::env::var_os(VICTIM).is_some() {
        let agent = Agent::new();
        agent.add("1.0.0.0", 0, &patient());
        agent.waiter();
        fs::write(std::env::var_os(VICTIM).unwrap(), agent.machine.at("").to_str().unwrap())
            .unwrap();
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("root");
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "a_test_that_is_killed_leaves_no_process_and_no_folder"]);
    let victim = Killed(victim.env(VICTIM, &told).stdout(Stdio::null()).spawn().unwrap());
    let root = || fs::read_to_string(&told).ok().filter(|root| !root.is_empty());
    until(|| root().is_some());
    let root = root().unwrap();
    drop(victim);
    let runs = || {
        let lines = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let mut lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(root.trim_end_matches('/')))
    };
    until(|| !runs() && !fs::exists(&root).unwrap());
}
