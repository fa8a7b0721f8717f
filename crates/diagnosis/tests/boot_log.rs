//! Boot logs as the serial console shows them: what each line means, and what of a log counts.

#[path = "boot_log/agents.rs"]
mod agents;
#[path = "boot_log/console.rs"]
mod console;
#[path = "boot_log/cutting.rs"]
mod cutting;
#[path = "boot_log/downloads.rs"]
mod downloads;
#[path = "boot_log/joining.rs"]
mod joining;
#[path = "boot_log/kubelet.rs"]
mod kubelet;
#[path = "boot_log/preflight.rs"]
mod preflight;
#[path = "boot_log/samples.rs"]
mod samples;
#[path = "boot_log/system.rs"]
mod system;

use std::collections::BTreeSet;

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Diagnosis, Verdict};

use console::{boot, diagnosed};

/// How a known line shows in a log, and a line like it that means something else.
pub(crate) struct Signature {
    /// What it is called.
    pub(crate) id: &'static str,
    /// The lines, as the console shows them.
    pub(crate) lines: &'static [&'static str],
    /// What they mean.
    pub(crate) cause: Cause,
    /// What the best proof must say.
    pub(crate) proof: &'static str,
    /// A line that is like them.
    pub(crate) near_miss: &'static str,
    /// What that one means.
    pub(crate) instead: Cause,
}

/// A known line whose words change what it means.
pub(crate) struct Refined {
    /// The signature, and what is different.
    pub(crate) id: &'static str,
    /// The lines, as the console shows them.
    pub(crate) lines: &'static [&'static str],
    /// What they mean.
    pub(crate) cause: Cause,
}

fn signatures() -> impl Iterator<Item = &'static Signature> {
    [
        system::FOUND,
        kubelet::FOUND,
        joining::FOUND,
        preflight::FOUND,
        downloads::FOUND,
        agents::FOUND,
    ]
    .into_iter()
    .flatten()
}

fn refined() -> impl Iterator<Item = &'static Refined> {
    [system::REFINED, kubelet::REFINED, joining::REFINED, preflight::REFINED, downloads::REFINED]
        .into_iter()
        .flatten()
        .chain(agents::REFINED)
}

/// What is wrong with a diagnosis that should name a cause, if anything is.
fn complaint(found: &Diagnosis, cause: Cause, proof: &str) -> Option<String> {
    let quoted = found.proof.first().map_or("nothing", |proof| proof.text.as_str());
    let is_right = found.verdict == Verdict::Failed
        && found.cause.reason == cause
        && quoted.contains(proof)
        && (cause == Cause::Unknown || found.cause.confidence > Confidence::Low);
    (!is_right).then(|| {
        let (reason, confidence) = (found.cause.reason, found.cause.confidence);
        format!("{:?} {reason} ({confidence:?}), expected {cause}; quoted: {quoted}", found.verdict)
    })
}

fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} rows:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn every_signature_is_found_in_a_log_and_its_proof_is_quoted() {
    let complaints: Vec<String> = signatures()
        .filter_map(|row| {
            complaint(&diagnosed(&boot(row.lines)), row.cause, row.proof)
                .map(|complaint| format!("{}: {complaint}", row.id))
        })
        .collect();
    report(&complaints);
}

#[test]
fn a_line_that_is_like_a_signature_means_something_else() {
    let complaints: Vec<String> = signatures()
        .filter_map(|row| {
            assert_ne!(row.cause, row.instead, "{}", row.id);
            let found = diagnosed(&boot(&[row.near_miss])).cause.reason;
            (found != row.instead).then(|| format!("{}: {found}, expected {}", row.id, row.instead))
        })
        .collect();
    report(&complaints);
}

#[test]
fn the_words_of_a_line_refine_what_it_means() {
    let complaints: Vec<String> = refined()
        .filter_map(|row| {
            complaint(&diagnosed(&boot(row.lines)), row.cause, "")
                .map(|complaint| format!("{}: {complaint}", row.id))
        })
        .collect();
    report(&complaints);
}

#[test]
fn the_log_around_a_signature_tells_nothing_by_itself() {
    let found = diagnosed(&boot(&[]));
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Unknown, Cause::Unknown));
    assert!(found.proof.is_empty(), "{:?}", found.proof);
}

#[test]
fn each_signature_has_a_name_of_its_own_and_each_refinement_refines_one() {
    let names: BTreeSet<&str> = signatures().map(|row| row.id).collect();
    assert_eq!(names.len(), signatures().count());
    // Those that the requirements list; more may come.
    assert!(names.len() >= 49, "{}", names.len());
    for row in refined() {
        let name = row.id.split(',').next().unwrap_or_default();
        assert!(names.contains(name), "{} refines no signature", row.id);
    }
}
