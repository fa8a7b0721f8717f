//! Managed run commands of a machine: `bringup-node wait` may run in one of them.

use bringup_azure::model::{RunCommand, VirtualMachine};
use bringup_diagnosis::{Piece, Source};
use bringup_objects::condition::cut;
use bringup_objects::report::CollectorState;

use super::vm::{told, waited};
use super::{collected, collector};
use crate::diagnosed::SUMMARY;
use crate::observation::{Cse, Observation};

/// The most bytes to read of a command's output. Azure stores less than this.
const READ: usize = 16 * 1024;

/// Whether the VM's instance view lists managed run commands. Azure does not document this list, so its
/// absence proves nothing.
pub(super) fn are_shown(vm: &VirtualMachine) -> bool {
    let mut handlers = vm.agent.iter().flat_map(|agent| &agent.handlers);
    handlers.any(|handler| {
        let kind = handler.kind.as_deref().unwrap_or_default().to_ascii_lowercase();
        kind.contains(".runcommandhandler")
    })
}

impl Observation {
    /// Adds the output of run commands in which bringup-node waited. All other commands belong to the user,
    /// and do not affect the bootstrap.
    #[must_use]
    pub fn with_run_commands(mut self, commands: &[RunCommand]) -> Self {
        let waits = commands.iter().filter_map(|command| Some((command, said(command)?)));
        let waits: Vec<(&RunCommand, &str)> = waits.collect();
        for (command, text) in &waits {
            let name = format!("run command {}", command.name);
            self.add(Piece::seen(Source::RunCommand, &name, text));
        }
        // Of several waits, the one that ended last decides.
        if let Some((command, text)) = waits.iter().max_by_key(|(command, _)| command.ended)
            && self.cse == Cse::Absent
        {
            let at = command.ended.or(Some(self.at));
            let whole = waited([*text]);
            // The command's exit code is that of bringup-node, also where the line that contains it was cut
            // off.
            let number = command.exit_code.and_then(|code| i32::try_from(code).ok());
            if let Some(exit) = whole.or(number) {
                self.cse = told(exit, at);
                self.warn(whole, false);
            }
        }
        let names: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
        let names = cut(&names.join(", "), 120);
        let (state, detail) = match (commands.len(), waits.first()) {
            (0, _) => (CollectorState::Empty, "the VM has none".to_owned()),
            (_, Some((command, _))) => {
                let state = command.execution_state.as_deref().unwrap_or("not said");
                (CollectorState::Ok, format!("{names}; bringup-node in {}: {state}", command.name))
            }
            (_, None) => (CollectorState::Ok, format!("{names}; none is of bringup-node")),
        };
        self.collected(collected(collector::RUN_COMMANDS, state, &detail));
        self
    }
}

/// The end of the command's output, if bringup-node printed it.
fn said(command: &RunCommand) -> Option<&str> {
    let texts = [command.output.as_deref(), command.error.as_deref()];
    let text = texts.into_iter().flatten().find(|text| text.contains(SUMMARY))?;
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(READ))..];
    end.contains(SUMMARY).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Script;

    const WAIT: &str = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"no signature\"],\"end\":1}";

    fn command(name: &str, exit: Option<i64>, output: &str, ended: &str) -> RunCommand {
        RunCommand {
            name: name.to_owned(),
            exit_code: exit,
            output: Some(output.to_owned()),
            ended: ended.parse().ok(),
            ..RunCommand::default()
        }
    }

    fn seen(commands: &[RunCommand]) -> Observation {
        Observation { script: Script::Waiter, ..Observation::default() }.with_run_commands(commands)
    }

    #[test]
    fn only_what_bringup_node_printed_is_evidence() {
        let others = command("cleanup", Some(1), "rm: No space left on device", "");
        let seen = seen(&[others]);
        assert_eq!(seen.cse, Cse::Absent);
        assert!(seen.evidence.pieces.is_empty());
        assert!(seen.collectors[0].detail.contains("none is of bringup-node"));
    }

    #[test]
    fn of_several_waits_the_last_counts() {
        let success = WAIT.replace("\"exit\":31", "\"exit\":0");
        let first = command("first", Some(31), WAIT, "2026-01-01T00:00:00Z");
        let second = command("second", Some(0), &success, "2026-01-01T00:05:00Z");
        assert!(matches!(seen(&[second.clone(), first]).cse, Cse::Succeeded { at: Some(_) }));
    }

    #[test]
    fn a_line_that_was_cut_still_tells_that_it_failed() {
        let cut = &WAIT[..WAIT.len() - 10];
        assert!(matches!(seen(&[command("a", Some(31), cut, "")]).cse, Cse::Failed { .. }));
        assert_eq!(seen(&[command("a", None, cut, "")]).cse, Cse::Absent, "it still runs");
    }

    #[test]
    fn very_much_before_the_line_is_not_read() {
        let long = format!("{}\n{WAIT}", "x".repeat(1024 * 1024));
        let seen = seen(&[command("a", Some(31), &long, "")]);
        let read = seen.evidence.pieces[0].text().unwrap_or_default();
        assert!(read.len() <= READ && read.contains("BootstrapTokenInvalid"), "{}", read.len());
    }
}
