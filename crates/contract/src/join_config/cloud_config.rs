//! The cloud-config that makes a plain image join a cluster.
//!
//! The cloud-config writes the configuration, for root only, and a script that cloud-init runs at every boot.
//! The script installs the agent if it is missing, and starts the join. So the next boot continues an
//! interrupted join; on a machine that has joined, the script changes nothing.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{JoinConfig, JoinExit};

/// The path of the configuration on the node.
pub const CONFIG_PATH: &str = "/etc/bringup-node/join.json";

/// Azure's size limit, in bytes before encoding.
pub const LIMIT: usize = 65_535;

/// The script, in the folder of scripts that cloud-init runs at every boot.
const SCRIPT_PATH: &str = "/var/lib/cloud/scripts/per-boot/50-bringup-join.sh";

/// The agent to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentArtifact {
    /// The URL of the download.
    pub url: String,
    /// The checksum of the download.
    pub sha256: String,
}

/// The error for a cloud-config that exceeds Azure's limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("custom data is {length} bytes, limit {LIMIT}")]
pub struct TooLong {
    /// The length of the cloud-config.
    pub length: usize,
}

/// The cloud-config of a machine that should join, before Azure's base64. The same input gives the same
/// bytes. The text contains the token: use it as CustomData, never as user data, which any pod can read.
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
    // The script does the work. This command makes cloud-init's own result agree with the script's, and is
    // the sign of a bootstrap for programs that wait for one.
    text.push_str("runcmd:\n- [ test, -e, /run/cluster-api/bootstrap-success.complete ]\n");
    if text.len() <= LIMIT { Ok(text) } else { Err(TooLong { length: text.len() }) }
}

/// The script. The lines that differ between machines come first.
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

/// Quotes a text for a configuration file of curl, where it must stay on one line.
fn in_curl_config(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text.replace('\\', r"\\").replace('"', "\\\"")
}

/// Quotes a text so that the shell takes it literally.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

const SCRIPT: &str = include_str!("install.sh");
