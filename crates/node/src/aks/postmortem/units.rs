//! The systemd state of the units that the bootstrap needs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bringup_diagnosis::{Piece, Source};
use jiff::Timestamp;

use crate::agent::Agent;
use crate::host::linux::subprocess::ask;
use crate::host::paths::Root;

/// The longest wait for an answer of systemd.
const LIMIT: Duration = Duration::from_secs(1);
/// Units that every bootstrap starts.
const ALWAYS: [&str; 2] = ["containerd.service", "kubelet.service"];
/// The number of additional units that are examined, out of the units that the log names.
const NAMED: usize = 3;
/// The number of lines that are read from a journal.
const LINES: &str = "20";

/// The states of the units, and the journals of units that have failed or that the log names.
pub(crate) fn examine(agent: &Agent, log: &str, since: Option<Timestamp>) -> Vec<Piece> {
    let (root, secrets) = (&agent.root, &agent.secrets);
    let named = named(log);
    let units: Vec<String> =
        ALWAYS.iter().map(|unit| (*unit).to_owned()).chain(named.iter().cloned()).collect();
    let states = match systemctl(root, &units) {
        Ok(states) => states,
        Err(why) => return vec![Piece::missing(Source::Journal, "units", &why)],
    };
    let mut pieces = vec![Piece::seen(Source::Journal, "units", &states)];
    let odd = units.iter().filter(|unit| named.contains(unit) || is_unwell(&states, unit));
    let journals: Vec<Piece> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            odd.map(|unit| (unit, scope.spawn(move || journal(root, unit, since)))).collect();
        let told = asked.into_iter().map(|(unit, asked)| match asked.join() {
            Ok(Ok(text)) => Piece::seen(Source::Journal, unit, &secrets.strike(&text)),
            Ok(Err(why)) => Piece::missing(Source::Journal, unit, &why),
            Err(_) => Piece::missing(Source::Journal, unit, "not read"),
        });
        told.collect()
    });
    pieces.extend(journals);
    pieces
}

fn program(root: &Root, name: &str) -> Result<PathBuf, String> {
    let mut places = ["/usr/bin", "/bin"].iter().map(|folder| root.at(folder).join(name));
    places.find(|place| place.is_file()).ok_or_else(|| format!("{name} is absent"))
}

fn systemctl(root: &Root, units: &[String]) -> Result<String, String> {
    let mut command = Command::new(program(root, "systemctl")?);
    command.args(["show", "--property=Id,LoadState,ActiveState,SubState,Result,NRestarts"]);
    ask(command.arg("--").args(units), LIMIT)
}

fn journal(root: &Root, unit: &str, since: Option<Timestamp>) -> Result<String, String> {
    let mut command = Command::new(program(root, "journalctl")?);
    command.args(["--no-pager", "--output=cat", "--boot", "--lines", LINES, "--unit", unit]);
    if let Some(since) = since {
        command.arg(format!("--since=@{}", since.as_second()));
    }
    ask(&mut command, LIMIT)
}

/// Whether a unit exists and neither runs nor has ended successfully.
fn is_unwell(states: &str, unit: &str) -> bool {
    let mut paragraphs = states.split("\n\n");
    let of_unit = paragraphs.find(|text| text.lines().any(|line| line == format!("Id={unit}")));
    of_unit.is_some_and(|text| {
        let says = |line: &str| text.lines().any(|said| said == line);
        says("LoadState=loaded")
            && (says("ActiveState=failed")
                || says("ActiveState=activating")
                || !says("Result=success"))
    })
}

/// The last units that the log names.
fn named(log: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let words = log.split(|letter: char| letter.is_whitespace() || "'\"`()[],;:=".contains(letter));
    for word in words.rev() {
        let is_unit = word.strip_suffix(".service").is_some_and(|name| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
            !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_part)
        });
        if is_unit && !ALWAYS.contains(&word) && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
        if found.len() == NAMED {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_units_that_a_log_names_are_looked_at() {
        let log = "start a.service\nJob for 'b.service' failed; see kubelet.service, /etc/x.service\nc@1.service: d.service e.service --f.service";
        assert_eq!(named(log), ["e.service", "d.service", "c@1.service"]);
        assert!(named("no unit here").is_empty());
    }

    #[test]
    fn a_unit_is_unwell_when_it_failed_or_starts_again_and_again() {
        let state = |active: &str, result: &str| {
            format!(
                "Id=a.service\nLoadState=loaded\nActiveState=active\nResult=success\n\nId=kubelet.service\nLoadState=loaded\nActiveState={active}\nResult={result}"
            )
        };
        let unwell = |active, result| is_unwell(&state(active, result), "kubelet.service");
        assert!(!unwell("active", "success"));
        assert!(unwell("failed", "exit-code") && unwell("activating", "exit-code"));
        assert!(!is_unwell(&state("failed", "exit-code"), "a.service"));
        assert!(!is_unwell("", "kubelet.service"));
        assert!(!is_unwell(
            "Id=kubelet.service\nLoadState=not-found\nActiveState=inactive",
            "kubelet.service"
        ));
    }
}
