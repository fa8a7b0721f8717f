//! Formats an explanation for human readers.

use std::fmt::Write as _;

use bringup_contract::exit_code::{AS_OF, Surfaces};
use bringup_explain::layout::{hang, wrap};
use bringup_explain::words;

use crate::explain::{CauseEntry, CodeEntry, Explanation, MeaningEntry, Standing, os_in_words};

/// The explanation of one topic.
pub(crate) fn one(explanation: &Explanation) -> String {
    let mut parts: Vec<String> =
        explanation.codes.iter().map(|entry| code(entry, explanation)).collect();
    if let Some(name) = explanation.arm_code {
        let said = match &explanation.cause {
            Some(entry) => {
                format!("{name} is an error code of ARM. By itself it names {}.", entry.reason)
            }
            None => format!(
                "{name} is an error code of ARM. It says only that something failed; the error \
                 inside it, or the one before it, says what."
            ),
        };
        parts.push(wrap(&said, ""));
    }
    parts.extend(explanation.cause.as_ref().map(cause));
    parts.join("\n")
}

fn code(entry: &CodeEntry, explanation: &Explanation) -> String {
    let called = match (entry.constants.as_slice(), explanation.image_version) {
        ([], Some(image)) => format!("no meaning is known on image {image}"),
        ([], None) => "no longer in use".to_owned(),
        (names, Some(image)) => format!("{} (on image {image})", names.join(" or ")),
        (names, None) => names.join(" or "),
    };
    let headline = format!("Exit code {} on {}: {called}", entry.code, os_in_words(entry.os));
    let mut text = wrap(&headline, "");
    for one in &entry.meanings {
        let _ = write!(text, "\n  {}{}\n", one.name, elsewhere(one, explanation));
        text.push_str(&meaning(one));
    }
    if let Some(misleading) = entry.misleading {
        let _ = write!(text, "\nHow it misleads:\n{}", wrap(misleading, "  "));
    }
    let is_common = |text: &&String| !entry.meanings.iter().any(|one| one.texts.contains(text));
    for (index, line) in entry.texts.iter().filter(is_common).enumerate() {
        text.push_str(if index == 0 { "\nStands beside it in the log:\n" } else { "" });
        text.push_str(&wrap(line, "  "));
    }
    for (index, entry) in entry.candidate_causes.iter().enumerate() {
        text.push_str(if index == 0 { "\nSeen with, most likely first:\n" } else { "" });
        let title = entry.title.unwrap_or(entry.meaning);
        text.push_str(&hang(&format!("{}: {title}", entry.reason), "  ", "    "));
        if let Some(remedy) = entry.remedy {
            text.push_str(&wrap(&format!("What to do: {remedy}"), "    "));
        }
    }
    text
}

/// Marks a meaning that the code does not have on the image that was asked about.
fn elsewhere(one: &MeaningEntry, explanation: &Explanation) -> String {
    match (explanation.image_version, one.standing) {
        (Some(_), Standing::Proposed) => " (only if bringup-node reports it)".to_owned(),
        (Some(image), Standing::Current | Standing::Past) if one.on_image == Some(false) => {
            format!(" (not on image {image})")
        }
        _ => String::new(),
    }
}

fn meaning(entry: &MeaningEntry) -> String {
    let surfaces = match entry.surfaces {
        Surfaces::Yes => "yes, it can come out of a node".to_owned(),
        surfaces if entry.can_surface => surfaces.words().to_owned(),
        surfaces => format!("no, {}", surfaces.words()),
    };
    let mut text = field("Means:", entry.meaning);
    text.push_str(&field("Images:", &when(entry)));
    text.push_str(&field("Occurs:", &surfaces));
    if let Some(origin) = entry.origin {
        text.push_str(&field("Origin:", origin));
    }
    for (index, line) in entry.texts.iter().enumerate() {
        text.push_str(&field(if index == 0 { "In log:" } else { "" }, line));
    }
    text
}

fn field(label: &str, value: &str) -> String {
    hang(value, &format!("    {label:<10}"), &" ".repeat(14))
}

/// The time in which a meaning is valid.
pub(crate) fn when(entry: &MeaningEntry) -> String {
    match (entry.standing, entry.valid_from, entry.valid_to) {
        (Standing::Proposed, _, _) => "none: requested, never merged".to_owned(),
        (Standing::Current, Some(from), None) => format!("built since {from} (known to {AS_OF})"),
        (Standing::Current, None, None) => format!("any (known to {AS_OF})"),
        (_, Some(from), Some(to)) => format!("built from {from} on, before {to}"),
        (_, None, Some(to)) => format!("built before {to}"),
        (Standing::Past, Some(from), None) => format!("built since {from}"),
        (Standing::Past, None, None) => "old ones".to_owned(),
    }
}

fn cause(entry: &CauseEntry) -> String {
    let mut text = wrap(&format!("{}: {}", entry.reason, entry.title.unwrap_or("")), "");
    let _ = write!(text, "\n{}", wrap(entry.meaning, "  "));
    if let Some(remedy) = entry.remedy {
        let _ = write!(text, "\nWhat to do:\n{}", wrap(remedy, "  "));
    }
    let _ = write!(text, "\n{}", hang(entry.owner, "Owner:      ", "            "));
    text.push_str(&hang(words::retry(entry.retryable), "Try again:  ", "            "));
    for (index, code) in entry.codes.iter().enumerate() {
        text.push_str(if index == 0 { "\nCodes it has been seen with:\n" } else { "" });
        let name = code.constant.unwrap_or("(no constant)");
        let _ = writeln!(text, "  {:<7} {:>5}  {name}", os_in_words(code.os), code.code);
    }
    text
}

/// All codes and causes, one per line.
pub(crate) fn list(codes: &[CodeEntry], causes: &[CauseEntry]) -> String {
    let mut text = String::new();
    let mut system = None;
    for entry in codes {
        if system.replace(entry.os) != Some(entry.os) {
            let _ = writeln!(text, "Exit codes on {}:", os_in_words(entry.os));
        }
        let mut named: Vec<&str> = Vec::new();
        for one in &entry.meanings {
            if named.contains(&one.name) {
                continue;
            }
            named.push(one.name);
            let standing = match one.standing {
                Standing::Current => "",
                Standing::Proposed => " (asked)",
                Standing::Past => " (past)",
            };
            let _ = writeln!(text, "  {:>5}  {}{standing}", entry.code, one.name);
        }
    }
    text.push_str("Causes:\n");
    for entry in causes {
        let first = format!("  {:<24} ", entry.reason.reason());
        text.push_str(&hang(
            entry.title.unwrap_or("the evidence does not tell"),
            &first,
            &" ".repeat(27),
        ));
    }
    text
}
