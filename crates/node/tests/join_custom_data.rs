//! Runs the script in the CustomData of a join: it installs and starts the agent, or reports why it cannot.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::join_config::{AgentArtifact, JoinConfig, join_custom_data};
use join_common::common::{Ended, Machine};
use join_common::{Plain, sha256};

struct Born {
    machine: Machine,
    script: String,
}

impl Born {
    /// A machine with the script of its cloud-config. `curl` is the body of a stub for curl.
    fn new(curl: &str) -> Self {
        let machine = Machine::new();
        machine.file("/dev/console", "");
        let agent = "#!/bin/sh\necho \"$@\" >\"${0%/usr/*}/started\"\nexit 42\n";
        machine.file("/served", agent);
        let plain = Plain::new();
        let config = JoinConfig::parse(plain.config.to_string().as_bytes()).unwrap();
        let artifact = AgentArtifact {
            url: "https://dl.example/agent?sig=SeCrEt123".to_owned(),
            sha256: sha256(agent.as_bytes()),
        };
        let text = join_custom_data(&config, &artifact).unwrap();
        let content = text.split("per-boot/").nth(1).unwrap();
        let content = content.split("content: ").nth(1).unwrap().lines().next().unwrap();
        let script = String::from_utf8(STANDARD.decode(content).unwrap()).unwrap();
        let root = machine.at("/").display().to_string();
        let root = root.trim_end_matches('/').to_owned();
        let script = script.replace("\nroot=\n", &format!("\nroot='{root}'\n"));
        let script = script.replace("\npause=5\n", "\npause=0\n");
        let stub = format!(
            "#!/bin/bash\nR='{root}'\necho x >>$R/tries\nwhile [ $# -gt 0 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n{curl}\n"
        );
        let stub = machine.file("/stubs/curl", &stub);
        fs::set_permissions(stub, fs::Permissions::from_mode(0o755)).unwrap();
        Self { machine, script }
    }

    fn boot(&self) -> Ended {
        let path = self.machine.file("/script.sh", &self.script);
        let stubs = self.machine.at("/stubs").display().to_string();
        let mut command = Command::new("sh");
        command.arg(path).env("PATH", format!("{stubs}:/usr/bin:/bin"));
        Ended::of(&command.output().unwrap())
    }

    fn tries(&self) -> usize {
        self.machine.read("/tries").lines().count()
    }
}

const GOOD: &str = "cp $R/served $out; printf '200 application/octet-stream'";

#[test]
fn the_agent_is_installed_once_and_started_at_every_boot() {
    let born = Born::new(GOOD);
    for _ in 0..2 {
        let ended = born.boot();
        assert_eq!(ended.code, 42, "{}", ended.err);
        assert_eq!(born.machine.read("/started"), "join --config /etc/bringup-node/join.json\n");
    }
    assert_eq!(born.tries(), 1);
    let data = fs::metadata(born.machine.at("/usr/local/bin/bringup-node")).unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o755);
}

#[test]
fn an_agent_that_is_not_the_right_one_is_replaced() {
    let born = Born::new(GOOD);
    born.machine.file("/usr/local/bin/bringup-node", "another");
    assert_eq!(born.boot().code, 42);
}

#[test]
fn what_may_work_later_is_tried_again() {
    let born = Born::new(&format!("[ $(wc -l <$R/tries) -ge 3 ] || exit 7; {GOOD}"));
    assert_eq!(born.boot().code, 42);
    assert_eq!(born.tries(), 3);
}

#[test]
fn test_55_each_failure_has_its_own_cause_on_the_console_and_in_the_sentinel() {
    for (curl, cause, words, tries) in [
        ("echo x >$out; printf '404 text/html'", "ArtifactMissing", "HTTP 404", 1),
        (
            "echo '<!DOCTYPE HTML>' >$out; printf '200 application/x'",
            "ProxyMisconfigured",
            "a web page",
            1,
        ),
        ("echo x >$out; printf '200 '", "DownloadInterrupted", "another checksum", 5),
        ("printf '000 '; exit 7", "EgressBlocked", "not reachable (curl 7)", 5),
        ("printf '000 '; exit 6", "DnsFailure", "does not resolve", 5),
        ("printf '000 '; exit 60", "TlsTrustFailure", "not trusted", 5),
        ("printf '503 '", "DownloadInterrupted", "HTTP 503", 5),
        ("printf '407 '", "ProxyMisconfigured", "credentials", 1),
    ] {
        let born = Born::new(curl);
        let ended = born.boot();
        assert_eq!((ended.code, born.tries()), (167, tries), "{cause}: {}", ended.err);
        let sentinel = born.machine.json("/run/cluster-api/bootstrap-failed.json");
        assert_eq!(sentinel["code"], 167);
        assert_eq!(sentinel["cause"], cause);
        assert!(sentinel["message"].as_str().unwrap().contains(words), "{sentinel}");
        let console = born.machine.read("/dev/console");
        let read = bringup_contract::cse::read(&console);
        assert_eq!(read.code, None);
        let node = read.node.unwrap();
        assert_eq!((node.exit, node.whole), (Some(167), true));
        assert_eq!(node.cause.unwrap().reason(), cause);
        assert_eq!(ended.summary()["name"], "JOIN_AGENT_NOT_INSTALLED");
        assert!(!console.contains("SeCrEt") && !ended.err.contains("SeCrEt"));
        assert!(!born.machine.at("/started").exists());
        // The next boot removes the mark of this failure.
        born.machine.file(
            "/stubs/curl",
            &fs::read_to_string(born.machine.at("/stubs/curl")).unwrap().replace(curl, GOOD),
        );
        assert_eq!(born.boot().code, 42);
        assert!(!born.machine.at("/run/cluster-api/bootstrap-failed.json").exists());
    }
}

#[test]
fn those_who_wait_see_why_no_agent_came() {
    let born = Born::new("printf '404 '");
    assert_eq!(born.boot().code, 167);
    let waited = born.machine.run(&["wait", "--timeout=60s"]);
    assert_eq!(waited.code, 35);
    assert!(waited.out.contains("\"code\":167") && waited.out.contains("ArtifactMissing"));
}
