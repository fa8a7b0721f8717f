//! Situations in which a node does not come up, and the part of the diagnosis that reaches the reader of the
//! extension's message.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_end_to_end::guest::Guest;
use serde_json::json;

use crate::machine::{AGENT, run};

const CONFIG: &str = "/opt/azure/containers/aks-node-controller-config.json";
const COMPLETE: &str = "/opt/azure/containers/provision.complete";
const RESULT: &str = "/var/log/azure/aks/provision.json";
/// The number of bytes at the end of a message that are preserved.
const KEPT: usize = 4096;
/// The longest wait for a waiter, in seconds; its own limits are shorter.
const PATIENCE: &str = "25";

/// A failure of the bootstrap.
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    /// The expected exit code of the extension.
    pub(crate) exit: u8,
    /// The text that the preserved part of the message must contain.
    pub(crate) says: &'static str,
    config: Option<&'static str>,
    script: &'static str,
    prepare: fn(&Guest) -> Result<()>,
    /// Whether any program is started besides the extension.
    started: bool,
}

const PLAIN: Situation = Situation {
    name: "",
    exit: 240,
    says: "",
    config: Some(r#"{"version":"v1"}"#),
    script: "exit 0",
    prepare: |_| Ok(()),
    started: true,
};

pub(crate) const SITUATIONS: &[Situation] = &[
    Situation {
        name: "configuration missing",
        says: "open provision file",
        config: None,
        ..PLAIN
    },
    Situation {
        name: "syntax error in the configuration",
        says: "unexpected end of input",
        config: Some(r#"{"version":"v1","vm_size":"Stand"#),
        ..PLAIN
    },
    Situation {
        name: "wrong type in the configuration",
        says: "enable_unattended_upgrade",
        config: Some(r#"{"version":"v1","enable_unattended_upgrade":"yes"}"#),
        ..PLAIN
    },
    Situation {
        name: "unsupported version",
        says: "unsupported version: v2",
        config: Some(r#"{"version":"v2"}"#),
        ..PLAIN
    },
    Situation {
        name: "scripts end with 77, no result",
        exit: 77,
        says: "exit status 77",
        script: "exit 77",
        ..PLAIN
    },
    Situation {
        name: "scripts killed by a signal",
        exit: 255,
        says: "signal: killed",
        // Every shell replaces itself with the next one: this is the process that the agent started.
        script: "kill -9 $$",
        ..PLAIN
    },
    Situation {
        name: "success of another machine left over, configuration missing",
        says: "open provision file",
        config: None,
        prepare: |guest| {
            guest.file(RESULT, r#"{"ExitCode":"0","Output":"","Error":""}"#)?;
            guest.file(COMPLETE, "")?;
            guest.file("/var/lib/cloud/data/instance-id", "new\n")?;
            guest.file("/var/lib/cloud/data/previous-instance-id", "old\n")
        },
        ..PLAIN
    },
    Situation {
        name: "211 with 20 kB of output",
        exit: 211,
        says: "211",
        script: "cp /boot/result /var/log/azure/aks/provision.json
touch /opt/azure/containers/provision.complete
exit 211",
        prepare: |guest| {
            let output = "waiting for the registry ".repeat(800);
            let result = json!({"ExitCode": "211", "Output": output, "Error": ""});
            guest.file("/boot/result", &result.to_string())
        },
        ..PLAIN
    },
    Situation {
        name: "nothing ever starts",
        exit: 244,
        says: "NEVER_STARTED",
        started: false,
        prepare: |guest| {
            guest.file("/etc/bringup-node/config.toml", "start-timeout = \"2s\"\n")
        },
        ..PLAIN
    },
    Situation {
        name: "finished without a result",
        exit: 247,
        says: "failed to read provision.json",
        started: false,
        prepare: |guest| guest.file(COMPLETE, ""),
        ..PLAIN
    },
    Situation {
        name: "registry set, oras missing",
        exit: 232,
        says: "ERR_ORAS_BINARY_NOT_FOUND",
        config: Some(
            r#"{"version":"v1","bootstrap_profile_container_registry_server":"r.azurecr.io"}"#,
        ),
        // The result of scripts that mistake the missing program for a network that does not answer.
        script: "echo '{\"ExitCode\":\"211\",\"Output\":\"\",\"Error\":\"\"}' >/var/log/azure/aks/provision.json
touch /opt/azure/containers/provision.complete
exit 211",
        ..PLAIN
    },
];

/// The result of a situation.
pub(crate) struct Outcome {
    /// `None` if the waiter had to be killed.
    pub(crate) exit: Option<u8>,
    pub(crate) right_exit: bool,
    /// Whether the preserved part contains the expected text.
    pub(crate) told: bool,
}

impl Situation {
    pub(crate) fn happen(&self, agent: &Path) -> Result<Outcome> {
        let guest = Guest::new(agent, self.script)?;
        if let Some(config) = self.config {
            guest.file(CONFIG, config)?;
        }
        (self.prepare)(&guest)?;
        let start = format!("{AGENT} provision --provision-config={CONFIG} >/dev/null 2>&1 &");
        let start = if self.started { start.as_str() } else { "" };
        let wait = format!("timeout {PATIENCE} {AGENT} provision-wait >/stdout 2>/stderr");
        run(&guest, &format!("{start}\n{wait}\necho $? >/exit\n"))
            .with_context(|| self.name.to_owned())?;
        let exit: u8 = guest.read("exit").trim().parse().context("the waiter ended")?;
        let exit = Some(exit).filter(|exit| *exit != 124);
        let message =
            format!("[stdout]\n{}\n[stderr]\n{}", guest.read("stdout"), guest.read("stderr"));
        let kept = &message.as_bytes()[message.len().saturating_sub(KEPT)..];
        let told = String::from_utf8_lossy(kept).contains(self.says);
        Ok(Outcome { exit, right_exit: exit == Some(self.exit), told })
    }
}
