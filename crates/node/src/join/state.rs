//! The progress of a join on this machine, according to the files on its disk.

use serde::{Deserialize, Serialize};

use super::task::Task;
use crate::run::Identity;

/// The files of kubeadm and kubelet; a complete join has no bootstrap settings.
const SETTINGS: &str = "/etc/kubernetes/kubelet.conf";
const BOOTSTRAP: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
const AUTHORITY: &str = "/etc/kubernetes/pki/ca.crt";
const KUBELET: &str = "/var/lib/kubelet/config.yaml";
const FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

/// All these files.
pub(super) const LEFT: [&str; 6] = [SETTINGS, BOOTSTRAP, AUTHORITY, KUBELET, FLAGS, CERTIFICATE];

/// The cluster and node name that this machine should join with; written before kubeadm starts.
pub(super) const INTENT: &str = "/var/lib/bringup-node/join/intent.json";

/// The intended join of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    machine: Option<String>,
    server: String,
    node: String,
}

impl Intent {
    /// The intended join of this machine.
    pub(super) fn of(task: &Task<'_>) -> Self {
        Self {
            machine: Identity::observe(task.root()).machine,
            server: task.config.cluster.server.clone(),
            node: task.config.node.name.clone(),
        }
    }
}

/// The progress of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// There are no files of a join.
    Nothing,
    /// There are files, but no complete join of this machine to this cluster.
    Half(Vec<&'static str>),
    /// The node has joined.
    Joined,
}

impl State {
    pub(super) fn is_joined(&self) -> bool {
        *self == Self::Joined
    }
}

pub(super) fn observe(task: &Task<'_>) -> State {
    let there = |path: &str| task.root().at(path).symlink_metadata().is_ok();
    let intended: Option<Intent> = serde_json::from_str(&task.text(INTENT)).ok();
    let ours = intended == Some(Intent::of(task));
    let found: Vec<&'static str> = LEFT.into_iter().filter(|path| there(path)).collect();
    judge(found, ours)
}

/// kubelet gets its certificate, then kubeadm deletes the bootstrap settings: then the join is complete.
fn judge(found: Vec<&'static str>, ours: bool) -> State {
    let has = |path: &str| found.contains(&path);
    if found.is_empty() {
        State::Nothing
    } else if ours && has(SETTINGS) && has(CERTIFICATE) && has(KUBELET) && !has(BOOTSTRAP) {
        State::Joined
    } else {
        State::Half(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_whole_only_with_everything_and_for_this_machine() {
        let whole = vec![SETTINGS, AUTHORITY, KUBELET, FLAGS, CERTIFICATE];
        assert_eq!(judge(Vec::new(), true), State::Nothing);
        assert_eq!(judge(whole.clone(), true), State::Joined);
        assert_eq!(judge(whole.clone(), false), State::Half(whole.clone()));
        let mut early = whole;
        early.push(BOOTSTRAP);
        assert!(matches!(judge(early, true), State::Half(_)));
        assert!(matches!(judge(vec![AUTHORITY], true), State::Half(_)));
    }
}
