//! The logs that may show why a bootstrap on Linux failed.

use std::path::Path;

use bringup_diagnosis::redaction::Redacted;
use bringup_diagnosis::{Piece, Source};

use super::cloud_init::Outcome;
use super::store;
use super::{Places, systemd};
use crate::capi::aks;
use crate::capi::settings::Watched;
use crate::host::paths::Root;
use crate::secrets::Secrets;

/// The number of bytes that are read from the end of a log.
pub(crate) const TAIL: u64 = 512 * 1024;

/// The number of lines that are read from a journal.
const JOURNAL: u32 = 300;

/// The text in cloud-init's output at the beginning of a boot.
const BOOT: &str = "running 'init-local'";

/// Reads the existing logs of this kind of bootstrap.
pub(crate) fn collect(root: &Root, places: &Places, watched: &Watched) -> Vec<Piece> {
    match watched {
        Watched::Aks => {
            let secrets = Secrets::delivered(root);
            let result = secrets.strike(&aks::result(places));
            let clean = |text: &str| secrets.strike(&last_boot(text));
            vec![
                Piece::seen(Source::ProvisionResult, "provision.json", &result),
                file(&places.aks_log, "cluster-provision.log", clean),
            ]
        }
        Watched::Unit(name) => {
            let journal = systemd::journal(root, name, JOURNAL);
            let journal = match journal {
                Some(text) => Piece::seen(Source::ScriptLog, name, &text),
                None => Piece::missing(Source::ScriptLog, name, "the journal does not answer"),
            };
            [vec![journal], cloud_init(places)].concat()
        }
        Watched::CloudInit | Watched::CloudbaseInit => cloud_init(places),
    }
}

fn cloud_init(places: &Places) -> Vec<Piece> {
    let mut pieces = vec![
        file(&places.output_log, "cloud-init-output.log", last_boot),
        file(&places.cloud_init_log, "cloud-init.log", complaints),
    ];
    if let Some(outcome) = Outcome::load(&places.cloud_init_result) {
        let errors: Vec<&str> = outcome.errors.iter().map(Redacted::as_str).collect();
        pieces.push(Piece::seen(Source::ScriptLog, "result.json", &errors.join("\n")));
    }
    pieces
}

/// Journals that contain errors on every machine, also on machines that come up.
pub(crate) fn deeper(root: &Root) -> Vec<Piece> {
    let journal = |unit: &str| {
        let text = systemd::journal(root, unit, 40)?;
        Some(Piece::seen(Source::ScriptLog, unit, &text))
    };
    ["kubelet.service", "containerd.service"].into_iter().filter_map(journal).collect()
}

fn file(path: &Path, name: &str, part: impl Fn(&str) -> String) -> Piece {
    match store::tail(path, TAIL) {
        Ok(text) => Piece::seen(Source::ScriptLog, name, &part(&text)),
        Err(error) => Piece::missing(Source::ScriptLog, name, &error.to_string()),
    }
}

/// The part since the last boot, unless that boot had nothing to do.
fn last_boot(text: &str) -> String {
    let begins = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let last = text.rfind(BOOT).map(|at| &text[begins(at)..]);
    let busy = last.filter(|last| !last.is_empty() && says_more_than_cloud_init(last));
    busy.unwrap_or(text).to_owned()
}

fn says_more_than_cloud_init(text: &str) -> bool {
    let own = ["Cloud-init v. ", "ci-info: "];
    text.lines().any(|line| !line.trim().is_empty() && !own.iter().any(|word| line.contains(word)))
}

/// The warnings and errors in cloud-init's own log, with their continuation lines. The other lines are
/// details of every run, including the whole configuration.
fn complaints(text: &str) -> String {
    let mut kept = String::new();
    let mut complains = false;
    for line in text.lines() {
        let levels = ["[WARNING]", "[ERROR]", "[CRITICAL]"];
        let begins = line.starts_with(|first: char| first.is_ascii_digit());
        if begins {
            complains = levels.iter().any(|level| line.contains(level));
        }
        if complains {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_boot_counts_unless_it_had_nothing_to_do() {
        let boot = |text: &str| format!("Cloud-init v. 25.1 running 'init-local' at x\n{text}");
        let two = boot("first\n") + &boot("second\n");
        assert_eq!(last_boot(&two), boot("second\n"));
        let idle = boot("first\n") + &boot("Cloud-init v. 25.1 finished at x\n");
        assert_eq!(last_boot(&idle), idle);
        assert_eq!(last_boot("no boot\n"), "no boot\n");
    }

    #[test]
    fn only_complaints_of_cloud_init_are_kept_with_their_traces() {
        let log = "2026-01-01 00:00:00,000 - util.py[DEBUG]: secret=1\n2026-01-01 00:00:01,000 - util.py[WARNING]: Failed loading yaml blob\nTraceback:\n  x\n2026-01-01 00:00:02,000 - util.py[DEBUG]: y\n";
        let kept = complaints(log);
        assert!(kept.contains("yaml blob") && kept.contains("Traceback"));
        assert!(!kept.contains("secret") && !kept.contains("DEBUG"));
    }
}
