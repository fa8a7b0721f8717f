//! The VM extension with a simulated guest agent: packages, enabling, and results.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;
mod extension;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use common::Machine;
use extension::package::{System, entries};
use extension::zip;
use extension::*;
use serde_json::Value;

/// The files of a zip, according to its directory.
fn unzipped(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let short = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let long = |at: usize| short(at) | short(at + 2) << 16;
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    let (count, mut at) = (short(end + 10), long(end + 16));
    let mut files = Vec::new();
    for _ in 0..count {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let name = String::from_utf8(bytes[at + 46..at + 46 + short(at + 28)].to_vec()).unwrap();
        let (packed, offset) = (long(at + 20), long(at + 42));
        let data = offset + 30 + short(offset + 26) + short(offset + 28);
        let mut content = Vec::new();
        let mut inflater = flate2::read::DeflateDecoder::new(&bytes[data..data + packed]);
        inflater.read_to_end(&mut content).unwrap();
        assert_eq!(content.len(), long(at + 24));
        let mut sum = flate2::Crc::new();
        sum.update(&content);
        assert_eq!(usize::try_from(sum.sum()).unwrap(), long(at + 16), "{name}");
        at += 46 + short(at + 28) + short(at + 30) + short(at + 32);
        files.push((name, content));
    }
    files
}

fn executable(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o744)).unwrap();
}

#[test]
fn test_01_a_zip_has_one_manifest_and_the_same_input_gives_the_same_bytes() {
    for (system, processors) in
        [(System::Linux, ["amd64", "arm64"].as_slice()), (System::Windows, ["amd64"].as_slice())]
    {
        let programs: Vec<_> =
            processors.iter().map(|it| (*it, format!("program {it}").into_bytes())).collect();
        let packed = zip::write(&entries(system, &programs).unwrap()).unwrap();
        assert_eq!(packed, zip::write(&entries(system, &programs).unwrap()).unwrap());
        let files = unzipped(&packed);
        let manifests: Vec<_> =
            files.iter().filter(|(name, _)| name.ends_with("HandlerManifest.json")).collect();
        let [(name, manifest)] = manifests.as_slice() else { panic!("{}", manifests.len()) };
        assert_eq!(name, "HandlerManifest.json");
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        let handler = &manifest[0]["handlerManifest"];
        for command in ["install", "enable", "update", "disable", "uninstall"] {
            let line = handler[format!("{command}Command")].as_str().unwrap();
            let (script, word) = line.split_once(' ').unwrap();
            assert!(files.iter().any(|(name, _)| name == script), "{script}");
            assert_eq!(word, command);
        }
        assert_eq!(handler["updateMode"], "UpdateWithInstall");
        assert_eq!(handler["continueOnUpdateFailure"], true);
        for off in ["reportHeartbeat", "rebootAfterInstall", "supportsMultipleExtensions"] {
            assert_eq!(handler[off], false, "{off}");
        }
        for (processor, program) in &programs {
            assert!(files.iter().any(|(_, content)| content == program), "{processor}");
        }
    }
    assert!(entries(System::Windows, &[("arm64", Vec::new())]).is_err());
}

#[test]
fn test_01_the_program_of_the_processor_runs_and_without_one_it_is_52() {
    let programs =
        ["amd64", "arm64"].map(|it| (it, format!("#!/bin/sh\necho {it} \"$@\"\n").into_bytes()));
    let packed = zip::write(&entries(System::Linux, &programs).unwrap()).unwrap();
    let machine = Machine::new();
    // A path with a space, and no test variable.
    let root = machine.at("/a handler");
    for (name, content) in unzipped(&packed) {
        executable(&root.join(name), &content);
    }
    let call = |processor: &str, command: &str| {
        executable(&machine.at("/bin/uname"), format!("#!/bin/sh\necho {processor}\n").as_bytes());
        let path = format!("{}:/usr/bin:/bin", machine.at("/bin").display());
        let line = format!("bin/ext {command}");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(line).current_dir(&root).env_clear().env("PATH", path);
        let output = shell.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for (processor, name) in [("x86_64", "amd64"), ("aarch64", "arm64")] {
        for command in ["install", "enable", "update", "disable", "uninstall"] {
            let said = format!("{name} extension {command} --handler {}\n", root.display());
            assert_eq!(call(processor, command), (Some(0), said));
        }
    }
    for command in ["install", "enable"] {
        assert_eq!(call("riscv64", command), (Some(52), String::new()));
    }
    for command in ["update", "disable", "uninstall"] {
        assert_eq!(call("riscv64", command), (Some(0), String::new()));
    }
}

#[test]
fn test_02_enable_returns_at_once_and_what_waits_outlives_the_group_and_the_agent() {
    let agent = Agent::new();
    let handler = agent.unpack("1.0.0.0");
    handler.settings(0, &patient());
    // `enable` returns while the wait continues: the sentinel never appears.
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    let status = handler.status(0).unwrap();
    assert_eq!((status.word.as_str(), status.code), ("transitioning", 0));
    assert_eq!(fs::read_to_string(handler.root.join("mrseq")).unwrap(), "0");
    let waiter = agent.waiter();
    assert_eq!(fs::read_link(format!("/proc/{waiter}/cwd")).unwrap(), Path::new("/"));
    for file in fs::read_dir(format!("/proc/{waiter}/fd")).unwrap() {
        let file = file.unwrap();
        // A descriptor may have been closed meanwhile.
        let Ok(target) = fs::read_link(file.path()) else { continue };
        let standard = ["0", "1", "2"].iter().any(|name| file.file_name() == *name);
        assert!(!standard || target == Path::new("/dev/null"), "{}", target.display());
        assert_ne!(target, Path::new("/dev/zero"), "it is inherited");
    }
    // A restarted guest agent calls `enable` again.
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(agent.waiter(), waiter);
    agent.is_waited_for_once();
}

#[test]
fn test_02_the_status_tells_how_long_it_lasts() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    until(|| handler.status(0).unwrap().message.contains("s of 600 s are over"));
    assert!(handler.status(0).unwrap().message.contains("it has not begun"));
    agent.machine.file("/var/lib/cloud/instance/scripts/runcmd", "#!/bin/sh\n");
    until(|| handler.status(0).unwrap().message.contains("it runs"));
}

#[test]
fn test_03_the_sentinel_makes_it_a_success_and_nothing_runs_on() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.waiter();
    agent.machine.file(SENTINEL, "");
    let status = handler.becomes(0, "success");
    assert_eq!((status.code, &status.substatus), (0, &None));
    assert!(status.message.starts_with("wait (0): "), "{}", status.message);
    assert!(status.message.ends_with("\"end\":1}"), "{}", status.message);
    let node = status.node();
    assert_eq!((node.exit, node.whole, node.waited), (Some(0), true, true));
    agent.is_quiet();
    assert_eq!((&agent.record()["phase"], &agent.record()["exit"]), (&"done".into(), &0.into()));
    let log = agent.machine.read(&format!("/var/log/azure/{NAME}/extension.log"));
    assert!(log.contains("enable 0: Begin") && log.contains("it is over, with 0"), "{log}");
}

#[test]
fn test_04_cloud_init_that_ends_without_the_sentinel_is_an_error_with_its_cause() {
    let agent = Agent::new();
    let handler = agent.add("1.0.0.0", 0, &patient());
    agent.machine.cloud_init_ends(r#"{"v1":{"datasource":"DataSourceAzure","errors":[]}}"#);
    let status = handler.becomes(0, "error");
    assert_eq!(status.code, 20, "{}", status.message);
    let (name, word, code) = status.substatus.clone().unwrap();
    assert_eq!((name.as_str(), word.as_str(), code), ("Unknown", "error", 20));
    assert_eq!(status.node().exit, Some(20));

    let agent = Agent::new();
    let log = "curl: (6) Could not resolve host: dl.example.com\n";
    agent.machine.file("/var/log/cloud-init-output.log", log);
    agent.machine.cloud_init_ends(r#"{"v1":{"datasource":"DataSourceAzure","errors":[]}}"#);
    let handler = agent.add("1.0.0.0", 0, &patient());
    let status = handler.becomes(0, "error");
    assert_eq!((status.code, status.substatus.clone().unwrap().0.as_str()), (25, "DnsFailure"));
    let node = status.node();
    assert_eq!(node.cause, Some(bringup_contract::Cause::DnsFailure));
    assert!(node.whole && node.waited);
}

#[test]
fn test_05_enable_after_the_end_changes_nothing_and_starts_nothing() {
    let agent = Agent::new();
    agent.machine.file(SENTINEL, "");
    let handler = agent.add("1.0.0.0", 0, &patient());
    handler.becomes(0, "success");
    agent.is_quiet();
    let bytes = handler.status_bytes(0);
    agent.machine.remove(SENTINEL);
    for _ in 0..3 {
        assert_eq!(agent.call(&handler, "enable", 0).code, 0);
        assert!(agent.processes("guard").is_empty() && agent.processes("wait").is_empty());
        assert_eq!(handler.status_bytes(0), bytes);
    }
    for broken in ["", "["] {
        fs::write(handler.status_path(0), broken).unwrap();
        assert_eq!(agent.call(&handler, "enable", 0).code, 0);
        assert_eq!(handler.status_bytes(0), bytes);
    }
    fs::remove_file(handler.status_path(0)).unwrap();
    assert_eq!(agent.call(&handler, "enable", 0).code, 0);
    assert_eq!(handler.status_bytes(0), bytes);
}
