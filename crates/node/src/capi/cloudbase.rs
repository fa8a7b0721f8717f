//! Reads the log of cloudbase-init.

use super::kubeadm;

/// The progress of cloudbase-init according to its log, which contains all its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The commands of the user data have not started.
    Early,
    /// The commands of the user data have started.
    Commands,
    /// The machine is about to restart, and cloudbase-init will run again.
    Rebooting,
    /// cloudbase-init has ended.
    Done,
}

impl Stage {
    /// Reads a log.
    pub(crate) fn read(log: &str) -> Self {
        let last = |words: &[&str]| words.iter().filter_map(|word| log.rfind(word)).max();
        let begun = last(&["Cloudbase-Init version:", "Executing plugins for stage"]);
        let run = &log[begun.unwrap_or_default()..];
        if run.contains("Plugins execution done") {
            Self::Done
        } else if run.contains(" Rebooting") {
            Self::Rebooting
        } else if run.contains("'UserDataPlugin'") || kubeadm::read(run).ran {
            Self::Commands
        } else {
            Self::Early
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_in_the_log_counts() {
        let begun = "INFO x [-] Cloudbase-Init version: 1.1\nExecuting plugins for stage 'MAIN':\n";
        assert_eq!(Stage::read(""), Stage::Early);
        assert_eq!(Stage::read(begun), Stage::Early);
        let commands = format!("{begun}Executing plugin 'UserDataPlugin'\n");
        assert_eq!(Stage::read(&commands), Stage::Commands);
        let done = format!("{commands}INFO x [-] Plugins execution done\n");
        assert_eq!(Stage::read(&done), Stage::Done);
        assert_eq!(Stage::read(&(done + begun)), Stage::Early);
        assert_eq!(Stage::read(&format!("{begun}INFO x [-] Rebooting\n")), Stage::Rebooting);
    }
}
