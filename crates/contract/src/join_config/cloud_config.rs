//! What a plain image is given at its birth so that it joins: a cloud-config.
//!
//! It writes the configuration for root only, and a script that cloud-init runs at every boot: it
//! installs the agent if it is not there, and starts the join. A boot that was interrupted is so
//! taken up by the next one; a machine that has joined does nothing.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{JoinConfig, JoinExit};

/// Where the configuration goes.
pub const CONFIG_PATH: &str = "/etc/bringup-node/join.json";

/// What Azure takes, in bytes before it is encoded.
pub const LIMIT: usize = 65_535;

/// Where cloud-init looks for scripts that it runs at every boot.
const SCRIPT_PATH: &str = "/var/lib/cloud/scripts/per-boot/50-bringup-join.sh";

/// The agent to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentArtifact {
    /// Where it is.
    pub url: String,
    /// What it must be.
    pub sha256: String,
}

/// It does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("custom data is {length} bytes, limit {LIMIT}")]
pub struct TooLong {
    /// How long it would be.
    pub length: usize,
}

/// The cloud-config of a machine that is to join, before Azure's base64. The same input gives the
/// same bytes. It holds the token: it goes into CustomData, never into user data, which any pod can
/// read.
pub fn join_custom_data(config: &JoinConfig, agent: &AgentArtifact) -> Result<String, TooLong> {
    let json = serde_json::to_vec(config).unwrap_or_default();
    let script = script(agent);
    let mut text = "#cloud-config\nwrite_files:\n".to_owned();
    for (path, mode, content) in
        [(CONFIG_PATH, "0600", json.as_slice()), (SCRIPT_PATH, "0700", script.as_bytes())]
    {
        let _ = writeln!(
            text,
            "- path: {path}\n  owner: root:root\n  permissions: \"{mode}\"\n  encoding: b64\n  content: {}",
            STANDARD.encode(content)
        );
    }
    // The script does the work. This command makes cloud-init's own verdict agree with it, and is
    // the sign of a bootstrap for programs that wait for one.
    text.push_str("runcmd:\n- [ test, -e, /run/cluster-api/bootstrap-success.complete ]\n");
    if text.len() <= LIMIT { Ok(text) } else { Err(TooLong { length: text.len() }) }
}

/// The script. What differs from machine to machine stands in its first lines.
fn script(agent: &AgentArtifact) -> String {
    let exit = JoinExit::AgentNotInstalled;
    format!(
        "#!/bin/sh\nurl={}\nsha256={}\nconfig={CONFIG_PATH}\ncode={}\nname={}\n{SCRIPT}",
        quoted(&in_curl_config(&agent.url)),
        quoted(&agent.sha256.to_ascii_lowercase()),
        exit.number(),
        exit.name(),
    )
}

/// A text as it stands between quotes in a configuration of curl, where it must stay one line.
fn in_curl_config(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text.replace('\\', r"\\").replace('"', "\\\"")
}

/// A text as the shell takes it literally.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

const SCRIPT: &str = include_str!("install.sh");
