//! Can oras be used? Absent, not in PATH and not executable are three different results. The check records
//! all evidence in every case: once the node is deleted, it cannot be inspected again.

use std::os::unix::fs::PermissionsExt as _;

use bringup_contract::Cause;
use serde_json::{Value, json};

use super::database::Database;
use super::programs::{Found, find};
use super::{Finding, State, Subject};
use crate::aks::exit_code;
use crate::host::linux::store;
use crate::host::paths::Root;

/// The folders where images have installed oras.
const PLACES: &[&str] = &["/usr/local/bin/oras", "/usr/bin/oras", "/opt/bin/oras"];

pub(super) fn check(subject: &Subject) -> Finding {
    let found = find(&subject.root, &subject.path, "oras");
    if let Found::Ok(place) = &found {
        let place = place.display().to_string();
        return Finding::new("oras", State::Ok, &format!("oras is {place}"), json!({"at": place}));
    }
    let os_release = store::head(&subject.root.os_release(), 16 * 1024)
        .unwrap_or_else(|error| format!("not read: {error}"));
    let package = Database::ask(&subject.root).has("oras");
    let places: Vec<(&str, String)> =
        PLACES.iter().map(|place| (*place, probe(&subject.root, place))).collect();
    let probed: Vec<String> =
        places.iter().map(|(place, what)| format!("{place} {what}")).collect();
    let what = match &found {
        Found::Ok(_) => "usable".to_owned(),
        Found::NotInPath(place) => format!("not in PATH but at {}", place.display()),
        Found::NotExecutable(place, why) => {
            format!("not executable at {} ({why})", place.display())
        }
        Found::Absent => "absent".to_owned(),
    };
    let detail = format!(
        "{}: oras {what}; PATH={}; probed {}; package: {package}",
        exit_code::ORAS,
        subject.path,
        probed.join(", "),
    );
    let data = json!({
        "PATH": subject.path,
        "probed": places.iter().map(|(place, what)| json!({"path": place, "found": what})).collect::<Value>(),
        "osRelease": os_release,
        "package": package,
        "proposed_code": exit_code::ORAS_PROPOSED,
    });
    // The agent adds the folder of a program outside PATH to the PATH of the scripts.
    let fatal = subject.needs_oras && !matches!(found, Found::NotInPath(_));
    let state = if fatal { State::Fatal } else { State::Warn };
    let mut finding = Finding::new("oras", state, &detail, data).because(Cause::BinaryMissing);
    finding.found = Some(found.word());
    finding.name = Some(exit_code::ORAS);
    finding
}

fn probe(root: &Root, place: &str) -> String {
    match root.at(place).metadata() {
        Ok(data) => format!("present (mode {:04o})", data.permissions().mode() & 0o7777),
        Err(_) => "absent".to_owned(),
    }
}
