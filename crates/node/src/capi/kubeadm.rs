//! The progress of kubeadm in a log: whether it ran, where it stopped, whether the node joined.

/// kubeadm writes one of these texts when the node has joined the cluster.
const JOINED: [&str; 2] = [
    "This node has joined the cluster",
    "Your Kubernetes control-plane has initialized successfully",
];

/// kubeadm writes one of these texts when it gives up.
const GAVE_UP: [&str; 2] = ["error execution phase ", "[preflight] Some fatal errors occurred"];

/// kubeadm writes these texts while it runs.
const RUNS: [&str; 4] =
    ["[preflight] ", "[init] Using Kubernetes", "[kubelet-start] ", "[discovery] "];

/// The progress of kubeadm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kubeadm {
    /// Whether kubeadm ran.
    pub(crate) ran: bool,
    /// Whether the node joined and no later line contradicts that.
    pub(crate) joined: bool,
    /// The phase in which kubeadm gave up.
    pub(crate) phase: Option<String>,
    /// The last preflight check that failed.
    pub(crate) check: Option<String>,
}

/// Reads a log.
pub(crate) fn read(log: &str) -> Kubeadm {
    let last = |words: &[&str]| words.iter().filter_map(|word| log.rfind(word)).max();
    let (joined, gave_up) = (last(&JOINED), last(&GAVE_UP));
    let joined_after_all = joined > gave_up;
    let failed = gave_up.filter(|_| !joined_after_all);
    Kubeadm {
        ran: joined.or(gave_up).or_else(|| last(&RUNS)).is_some(),
        joined: joined_after_all,
        phase: failed.and_then(|_| word_after(log, "error execution phase ", ":")),
        check: failed.and_then(|_| word_after(log, "[ERROR ", "]")),
    }
}

/// The word that follows the last occurrence of a text.
fn word_after(log: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = log.rsplit_once(before)?;
    let word = rest.split([' ', '\n', '\r']).next()?.split(after).next()?;
    Some(word.chars().take(80).collect::<String>()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_refused_is_named_with_its_phase() {
        let log = "[preflight] Running pre-flight checks\nerror execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2\n";
        let read = read(log);
        assert_eq!(read.phase.as_deref(), Some("preflight"));
        assert_eq!(read.check.as_deref(), Some("NumCPU"));
        assert!(read.ran && !read.joined);
    }

    #[test]
    fn a_second_attempt_that_joins_takes_the_first_back() {
        let log = "error execution phase preflight: no\nThis node has joined the cluster:\n";
        assert!(read(log).joined);
        assert_eq!(read(log).phase, None);
        let back = "This node has joined the cluster:\nerror execution phase kubelet-start: no\n";
        assert!(!read(back).joined && read(back).phase.is_some());
    }

    #[test]
    fn a_log_without_kubeadm_says_nothing() {
        assert_eq!(read("Cloud-init v. 25.1 running 'init'\n"), Kubeadm::default());
        assert!(read("[preflight] Running pre-flight checks\n").ran);
    }
}
