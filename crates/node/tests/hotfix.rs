//! A newer agent replaces the old one, or nothing changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use common::Machine;

/// A machine whose package manager installs this version of the agent.
fn machine(installs: &str) -> Machine {
    let machine = Machine::new();
    machine
        .file("/opt/azure/containers/aks-node-controller-hotfix.json", "{\"version\":\"0.1.7\"}");
    let root = machine.at("/").display().to_string();
    let script = format!(
        "#!/bin/bash\necho \"$@\" >{root}/asked\n\
         printf '#!/bin/bash\\nif [ $1 = version ]; then echo {installs}; else echo \"newer: $*\"; exit 9; fi\\n' \
         >{root}/usr/bin/aks-node-controller\nchmod 0755 {root}/usr/bin/aks-node-controller\n"
    );
    machine.program("/usr/bin/dnf", 0o755);
    machine.file("/usr/bin/dnf", &script);
    machine
}

const HOTFIX: &str = "/opt/azure/containers/aks-node-controller-hotfix";

#[test]
fn a_newer_patch_of_the_same_version_is_installed_recorded_and_takes_over() {
    let machine = machine("0.1.7");
    assert_eq!(machine.run(&["download-hotfix"]).code, 0);
    assert_eq!(machine.read("/asked"), "install -y aks-node-controller-0.1.7\n");
    let record = machine.json("/var/lib/bringup-node/hotfix.json");
    assert_eq!(record["version"], "0.1.7");
    assert_eq!(record["sha256"].as_str().unwrap().len(), 64);
    let waited = machine.run(&["provision-wait", "--timeout=60s"]);
    assert_eq!((waited.code, waited.out.contains("newer: ")), (9, true), "{}", waited.out);
    machine.script("exit 0");
    let launched = machine.run(&["launch", "--hostname-timeout=0s"]);
    assert_eq!(launched.code, 9, "{}", launched.err);
    assert!(launched.out.contains("newer: provision --nbc-cmd="), "{}", launched.out);
}

#[test]
fn a_hotfix_that_is_not_what_was_installed_is_left_alone() {
    let machine = machine("0.1.7");
    machine.run(&["download-hotfix"]);
    machine.program(HOTFIX, 0o755);
    machine.leave_result("{\"ExitCode\":\"77\"}");
    assert_eq!(machine.wait().code, 77);
}

#[test]
fn whatever_goes_wrong_with_a_hotfix_stops_nothing() {
    for (why, spoil) in [
        ("is 0.1.6, and not 0.1.7", None),
        ("unsupported OS: flatcar", Some(("/etc/os-release", "ID=flatcar\n"))),
        ("dnf ended with", Some(("/usr/bin/dnf", "#!/bin/bash\nexit 1\n"))),
        ("is not newer", Some((&*format!("{HOTFIX}.json"), "{\"version\":\"0.1.0\"}"))),
        ("the pointer: ", Some((&*format!("{HOTFIX}.json"), "{"))),
    ] {
        let machine = machine("0.1.6");
        if let Some((path, text)) = spoil {
            machine.file(path, text);
        }
        assert_eq!(machine.run(&["download-hotfix"]).code, 0);
        let log = machine.read("/var/log/azure/aks-node-controller.log");
        assert!(log.contains(why), "{why}: {log}");
        assert!(!machine.at(HOTFIX).exists());
    }
}
