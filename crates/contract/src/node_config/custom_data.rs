//! The CustomData of a VM, and the command of the extension that waits for the result.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use super::{NodeConfig, features};

/// The command of the VM extension: waits for the result and prints it.
pub const CSE: &str = "/opt/azure/containers/aks-node-controller provision-wait";

/// The path of the configuration on the node.
pub const CONFIG_PATH: &str = "/opt/azure/containers/aks-node-controller-config.json";
/// The path of the features on the node.
pub const FEATURES_PATH: &str = "/opt/azure/containers/enabled_features.sh";

/// Azure accepts CustomData with fewer characters than this.
pub const LIMIT: usize = 87_380;

/// The bootstrap properties of a VM.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeBootstrapping {
    /// The value of `osProfile.customData`.
    pub custom_data: String,
    /// The value of `commandToExecute` in the extension.
    pub cse: &'static str,
    /// Features that were left out because of an invalid name or value.
    pub dropped_features: Vec<String>,
}

impl std::fmt::Debug for NodeBootstrapping {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NodeBootstrapping")
            .field("custom_data", &format_args!("{} characters", self.custom_data.len()))
            .field("cse", &self.cse)
            .field("dropped_features", &self.dropped_features)
            .finish()
    }
}

/// The formats of CustomData.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For Ubuntu and Azure Linux: a boothook that starts the launcher.
    Boothook,
    /// For images before March 2026, whose unit waits for the file.
    CloudConfig,
    /// For Flatcar and Azure Container Linux.
    Ignition,
}

/// The error for CustomData that exceeds Azure's limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("custom data is {length} characters, limit {LIMIT}; largest: {}", largest.join(", "))]
pub struct TooLong {
    /// The length of the CustomData.
    pub length: usize,
    /// The largest parts, with their size in bytes.
    pub largest: Vec<String>,
}

/// A file that is written on the node.
pub(super) struct File<'a> {
    pub(super) path: &'static str,
    pub(super) content: &'a [u8],
}

/// CustomData and the command of the extension, together.
///
/// ```
/// use bringup_contract::node_config::{Form, NodeConfig, node_bootstrapping};
///
/// let config = NodeConfig::parse(br#"{"version":"v1","cluster_config":{"location":"eastus"}}"#)?;
/// let made = node_bootstrapping(&config, Form::Boothook)?;
/// assert_eq!(made, node_bootstrapping(&config, Form::Boothook)?);
/// assert!(made.cse.ends_with("provision-wait"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn node_bootstrapping(config: &NodeConfig, form: Form) -> Result<NodeBootstrapping, TooLong> {
    let (features, dropped_features) = features::sorted_out(&config.configuration.enabled_features);
    let mut files = vec![File { path: CONFIG_PATH, content: config.source() }];
    if !features.is_empty() {
        files.push(File { path: FEATURES_PATH, content: features.as_bytes() });
    }
    let made = match form {
        Form::Boothook => shortest(&files, boothook),
        Form::CloudConfig => shortest(&files, cloud_config),
        Form::Ignition => shortest(&files, |files, _| super::ignition::ignition(files)),
    };
    Ok(NodeBootstrapping { custom_data: made?, cse: CSE, dropped_features })
}

/// The plain format if it fits, else the compressed one.
fn shortest(
    files: &[File<'_>],
    make: impl Fn(&[File<'_>], Packing) -> String,
) -> Result<String, TooLong> {
    let plain = STANDARD.encode(make(files, Packing::Plain));
    if plain.len() < LIMIT {
        return Ok(plain);
    }
    let packed = STANDARD.encode(make(files, Packing::Gzip));
    if packed.len() < LIMIT {
        return Ok(packed);
    }
    let mut sizes: Vec<(usize, &str)> =
        files.iter().map(|file| (file.content.len(), file.path)).collect();
    sizes.sort_unstable_by(|left, right| right.cmp(left));
    let largest = sizes.iter().map(|(size, path)| format!("{path} ({size} bytes)")).collect();
    Err(TooLong { length: packed.len(), largest })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
}

/// Compresses reproducibly: the header contains no time and no name.
pub(super) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = packer.write_all(content);
    packer.finish().unwrap_or_default()
}

/// Base64 in lines of 76 characters, as the program `base64` writes them.
fn base64_lines(content: &[u8]) -> String {
    let encoded = STANDARD.encode(content);
    let (lines, rest) = encoded.as_bytes().as_chunks::<76>();
    let lines = lines.iter().map(<[u8; 76]>::as_slice).chain([rest]);
    lines
        .filter(|line| !line.is_empty())
        .flat_map(|line| [String::from_utf8_lossy(line), "\n".into()])
        .collect()
}

const HEAD: &str = r#"#cloud-boothook
#!/bin/bash
set -euo pipefail
umask 077

home=/opt/azure/containers
# A boothook runs at every boot; what succeeded is not done again, unless another machine did it,
# of which this one is a copy.
told() { cat "/var/lib/cloud/data/$1" 2>/dev/null || true; }
before=$(told previous-instance-id)
copied() { [ -n "$before" ] && [ "$before" != NO_PREVIOUS_INSTANCE_ID ] && [ "$before" != "$(told instance-id)" ]; }
if [ -e "$home/provision.complete" ] && [ ! -e "$home/provision.failed" ] && ! copied; then
  exit 0
fi

mkdir -p "$home"
mkdir -p -m 0755 /var/log/azure
if [ -x "$home/provision_preload.sh" ]; then
  nohup "$home/provision_preload.sh" >/dev/null 2>&1 </dev/null &
fi

# Writes a file under a temporary name first: no reader sees half of it, or before its mode is set.
store() {
  local made
  made=$(mktemp "$1.XXXXXX")
  chmod 0600 "$made"
  cat >"$made"
  sync "$made"
  mv -f "$made" "$1"
  sync "$(dirname "$1")"
}

"#;

const START: &str = r#"# The name that images have had since they call it a launcher, and the one before.
for launcher in "$home"/aks-node-controller-{launcher,wrapper}.sh; do
  if [ -x "$launcher" ]; then
    nohup "$launcher" >/var/log/azure/aks-node-controller.output 2>&1 </dev/null &
    exit 0
  fi
done
systemctl start --no-block aks-node-controller.service
"#;

const CLOUD_CONFIG_PART: &str = "#cloud-config\nruncmd:\n- [ \"true\" ]\n";

fn boothook(files: &[File<'_>], packing: Packing) -> String {
    let mut script = HEAD.to_owned();
    for file in files {
        let (content, unpack) = match packing {
            Packing::Plain => (base64_lines(file.content), ""),
            Packing::Gzip => (base64_lines(&gzip(file.content)), " | gzip -d"),
        };
        let _ = write!(
            script,
            "base64 -d <<'END_OF_FILE'{unpack} | store {}\n{content}END_OF_FILE\n\n",
            file.path
        );
    }
    script.push_str(START);
    let parts =
        [("text/cloud-boothook", script.as_str()), ("text/cloud-config", CLOUD_CONFIG_PART)];
    multipart(&parts)
}

/// The boundary is derived from the parts, so that the same parts give the same bytes.
fn multipart(parts: &[(&str, &str)]) -> String {
    let mut digest = Sha256::new();
    for (kind, content) in parts {
        digest.update(kind);
        digest.update([0]);
        digest.update(content);
        digest.update([0]);
    }
    let boundary = digest.finalize()[..16]
        .iter()
        .fold("bringup-".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    let mut out =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    for (kind, content) in parts {
        let _ = write!(
            out,
            "--{boundary}\nContent-Type: {kind}; charset=\"us-ascii\"\nMIME-Version: 1.0\n\
             Content-Transfer-Encoding: 7bit\n\n{content}\n"
        );
    }
    let _ = writeln!(out, "--{boundary}--");
    out
}

/// The format for images before March 2026.
fn cloud_config(files: &[File<'_>], packing: Packing) -> String {
    let mut out = "#cloud-config\nwrite_files:\n".to_owned();
    for file in files {
        let (path, head) = (file.path, "permissions: \"0755\"\n  owner: root");
        let _ = match packing {
            Packing::Plain => {
                let content = STANDARD.encode(file.content);
                writeln!(out, "- path: {path}\n  {head}\n  content: !!binary |\n    {content}")
            }
            Packing::Gzip => {
                let content = STANDARD.encode(gzip(file.content));
                writeln!(out, "- path: {path}\n  {head}\n  encoding: gz+b64\n  content: {content}")
            }
        };
    }
    out
}
