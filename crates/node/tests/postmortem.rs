//! After a failed attempt, the agent examines units, journals, events and the machine itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::Machine;

/// A machine whose systemd reports this state and journal for kubelet.
fn machine(state: &str, journal: &str) -> Machine {
    let machine = Machine::new();
    let program = |name: &str, text: &str| {
        machine.program(&format!("/usr/bin/{name}"), 0o755);
        machine.file(&format!("/usr/bin/{name}"), &format!("#!/bin/bash\n{text}\n"));
    };
    program(
        "systemctl",
        &format!(
            "printf 'Id=containerd.service\\nLoadState=loaded\\nActiveState=active\\nResult=success\\n\\nId=kubelet.service\\nLoadState=loaded\\nActiveState={state}\\nResult=exit-code\\n'"
        ),
    );
    program("journalctl", &format!("echo \"$*\" >>{}\n{journal}", machine.at("/asked").display()));
    machine
}

#[test]
fn the_journal_of_a_unit_that_failed_tells_what_the_log_does_not() {
    let line = "E0127 failed to run Kubelet: misconfiguration: kubelet cgroup driver: \\\"cgroupfs\\\" is different from docker cgroup driver: \\\"systemd\\\"";
    let machine = machine("failed", &format!("echo \"{line}\""));
    let script = "echo '+ systemctl_restart kubelet' >>$L/cluster-provision.log; exit 31";
    assert_eq!(machine.provision(script, &[]).code, 31);
    let summary = machine.wait().summary();
    assert_eq!(summary["exit"], 31);
    let asked = machine.read("/asked");
    assert!(asked.contains("--unit kubelet.service") && !asked.contains("containerd"), "{asked}");
    assert!(asked.contains("--lines 20") && asked.contains("--since=@"), "{asked}");
    let report = machine.json("/var/log/bringup-node/provision-report.json");
    let looked = report["diagnosis"]["lookedAt"].to_string();
    assert!(looked.contains("kubelet.service (journal)"), "{looked}");
    assert!(summary["ev"].to_string().contains("cgroup"), "{summary}");
}

#[test]
fn units_that_are_well_and_not_named_are_left_alone() {
    let machine = machine("active", "echo never");
    machine.file("/usr/bin/systemctl", "#!/bin/bash\nprintf 'Id=kubelet.service\\nLoadState=loaded\\nActiveState=active\\nResult=success\\n'\n");
    machine.provision(
        "echo 'Failed to start snapshot-update.service' >>$L/cluster-provision.log; exit 9",
        &[],
    );
    assert!(machine.read("/asked").contains("--unit snapshot-update.service"));
    assert!(!machine.read("/asked").contains("kubelet"));
}

#[test]
fn a_systemd_that_hangs_is_said_to_and_holds_nothing_up() {
    let machine = machine("failed", "echo never");
    let (hung, passes) = (machine.at("/hung"), machine.time_passes(1_000));
    let hangs = format!("#!/bin/bash\necho $$ >>'{}'\n{passes}\nsleep 1000\n", hung.display());
    machine.file("/usr/bin/systemctl", &hangs);
    assert_eq!(machine.provision("exit 9", &[]).code, 9);
    // The hanging program was killed, and is not run again.
    let pids = machine.read("/hung");
    assert_eq!(pids.lines().count(), 1, "{pids}");
    assert!(!Path::new(&format!("/proc/{}", pids.trim())).exists(), "it lives");
    let report = machine.json("/var/log/bringup-node/provision-report.json");
    let looked = report["diagnosis"]["lookedAt"].to_string();
    assert!(looked.contains("units (journal): missing, systemctl said nothing"), "{looked}");
}

#[test]
fn without_a_trace_the_step_is_the_one_after_the_last_event() {
    let machine = machine("active", "true");
    let script = "E=$L/Microsoft.Azure.Extensions.CustomScript/events; mkdir -p $E\n\
        echo '{\"TaskName\":\"AKS.CSE.installDeps\"}' >$E/1700000000001.json\n\
        echo '{\"TaskName\":\"AKS.CSE.ensureContainerd\"}' >$E/1700000000002.json; exit 9";
    machine.provision(script, &[]);
    assert_eq!(machine.wait().summary()["step"], "after AKS.CSE.ensureContainerd");
}

#[test]
fn what_the_log_blames_is_probed_and_an_answer_now_makes_it_less_sure() {
    let machine = machine("active", "true");
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    machine.file("/etc/bringup-node/config.toml", &format!("[endpoints]\ndns = \"{address}\"\n"));
    server.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    // One answer before the attempt, one after.
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let mut packet = [0; 512];
            let (length, from) = server.recv_from(&mut packet).unwrap();
            (packet[2], packet[3], packet[7]) = (0x81, 0x80, 1);
            server.send_to(&packet[..length], from).unwrap();
        }
    });
    let path = machine.script("echo ';; connection timed out; no servers could be reached' >>$L/cluster-provision.log; exit 52");
    let flag = format!("--nbc-cmd={}", path.display());
    let mut command = machine.command(&["provision", &flag]);
    assert_eq!(
        command.env("API_SERVER_NAME", "api.example.io").output().unwrap().status.code(),
        Some(52)
    );
    serving.join().unwrap();
    let summary = machine.wait().summary();
    assert_eq!(summary["conf"], "medium", "{summary}");
    assert!(summary["cause"].as_str().unwrap().contains("Dns"), "{summary}");
    let report = machine.json("/var/log/bringup-node/provision-report.json");
    assert!(report["probes"].to_string().contains("\"dns\""), "{report}");
}
