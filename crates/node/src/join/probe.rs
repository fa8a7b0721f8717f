//! Queries the cluster with the token after kubeadm failed. kubeadm reports `Unauthorized` even if the token
//! is valid and only a role is missing, and times out if no server answers.

use std::path::Path;
use std::time::Duration;

use bringup_contract::Cause;

use super::program::{self, Ending};
use super::task::Task;

/// The longest wait for the cluster.
const LIMIT: Duration = Duration::from_secs(10);

/// Texts of kubeadm that point to the token or the roles.
const ABOUT_ACCESS: [&str; 7] =
    ["unauthorized", "forbidden", "cluster-info", "jws", "credentials", "token", "timed out"];

/// The answer of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// The cluster answered with this status.
    Answered(u16),
    /// The cluster did not answer: curl ended with this exit code.
    Silent(i32),
    /// The cluster could not be queried.
    NotAsked,
}

/// Sends the same request that kubeadm sends first.
pub(super) fn ask(task: &Task<'_>, authority: &Path) -> Probe {
    let server = task.config.cluster.server.trim_end_matches('/');
    let input = format!(
        "url = \"{server}/api/v1/namespaces/kube-public/configmaps/cluster-info\"\nheader = \"Authorization: Bearer {}\"\n",
        task.config.token.reveal()
    );
    let authority = authority.display().to_string();
    let arguments = [
        "--silent",
        "--max-time",
        "8",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
        "--cacert",
        &authority,
        "--config",
        "-",
    ];
    let said = program::run(task.root(), "curl", &arguments, &input, LIMIT);
    match said.ending {
        Ending::Exited(0) => said.out.trim().parse().map_or(Probe::NotAsked, Probe::Answered),
        Ending::Exited(code) => Probe::Silent(code),
        Ending::TimedOut(_) => Probe::Silent(28),
        Ending::Killed(_) | Ending::Absent | Ending::NotRun(_) => Probe::NotAsked,
    }
}

impl Probe {
    /// A sentence about the answer.
    pub(super) fn told(self) -> String {
        match self {
            Self::Answered(status) => format!("cluster-info answers HTTP {status} to this token"),
            Self::Silent(code) => format!("the API server does not answer this node (curl {code})"),
            Self::NotAsked => "no response from the API server".to_owned(),
        }
    }

    /// The cause, if the answer determines it. Other errors of kubeadm take precedence.
    pub(super) fn verdict(self, kubeadm: &str) -> Option<(Cause, &'static str)> {
        let kubeadm = kubeadm.to_ascii_lowercase();
        // kubeadm checks the machine before its first request to the cluster.
        let elsewhere = kubeadm.contains("[error ");
        let about_access =
            kubeadm.trim().is_empty() || ABOUT_ACCESS.iter().any(|word| kubeadm.contains(word));
        if elsewhere {
            return None;
        }
        match self {
            Self::Answered(403) if about_access => Some((
                Cause::TlsBootstrapPending,
                "the token is good, and the group of bootstrap tokens may not read cluster-info (HTTP 403): a role is missing in kube-public",
            )),
            Self::Answered(401) if about_access => Some((
                Cause::BootstrapTokenInvalid,
                "the cluster does not know the token (HTTP 401): it has expired or was replaced",
            )),
            Self::Silent(6) => {
                Some((Cause::ApiServerDnsFailure, "the name of the API server does not resolve"))
            }
            Self::Silent(7 | 28) => {
                Some((Cause::ApiServerUnreachable, "the API server cannot be reached"))
            }
            Self::Silent(60) => Some((
                Cause::ClusterCaMismatch,
                "the API server is not of the authority that this node was given",
            )),
            Self::Answered(_) | Self::Silent(_) | Self::NotAsked => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_54_unauthorized_is_a_missing_role_when_the_cluster_answers_403() {
        let kubeadm = "error execution phase preflight: couldn't validate the identity of the API Server: Unauthorized";
        let cause = |probe: Probe| probe.verdict(kubeadm).map(|(cause, _)| cause);
        assert_eq!(cause(Probe::Answered(403)), Some(Cause::TlsBootstrapPending));
        assert_eq!(cause(Probe::Answered(401)), Some(Cause::BootstrapTokenInvalid));
        assert_eq!(cause(Probe::Answered(200)), None);
        assert_eq!(cause(Probe::Silent(7)), Some(Cause::ApiServerUnreachable));
        assert_eq!(cause(Probe::Silent(6)), Some(Cause::ApiServerDnsFailure));
        assert_eq!(cause(Probe::NotAsked), None);
    }

    #[test]
    fn what_kubeadm_finds_on_the_machine_is_not_blamed_on_the_cluster() {
        let kubeadm = "[preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: 1 is less than 2";
        assert_eq!(Probe::Answered(403).verdict(kubeadm), None);
        assert_eq!(Probe::Silent(7).verdict(kubeadm), None);
        assert_eq!(Probe::Answered(403).verdict("kubelet is not healthy"), None);
    }
}
