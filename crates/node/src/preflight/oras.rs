//! Can oras be used? Absent, not in PATH and not executable are three answers. Whatever the
//! answer, everything that shows it is recorded: when the node is gone, nobody can look again.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bringup_contract::Cause;
use serde_json::{Value, json};

use super::programs::{Found, find};
use super::{Finding, State, Subject};
use crate::code;
use crate::paths::Root;
use crate::store;

/// Where images have had it.
const PLACES: &[&str] = &["/usr/local/bin/oras", "/usr/bin/oras", "/opt/bin/oras"];

/// How long the package database may take.
const PACKAGES: Duration = Duration::from_millis(400);

pub(super) fn check(subject: &Subject) -> Finding {
    let found = find(&subject.root, &subject.path, "oras");
    if let Found::Ok(place) = &found {
        let place = place.display().to_string();
        return Finding::new("oras", State::Ok, &format!("oras is {place}"), json!({"at": place}));
    }
    let os_release = store::head(&subject.root.os_release(), 16 * 1024)
        .unwrap_or_else(|error| format!("not read: {error}"));
    let package = package(&subject.root);
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
        code::ORAS,
        subject.path,
        probed.join(", "),
    );
    let data = json!({
        "PATH": subject.path,
        "probed": places.iter().map(|(place, what)| json!({"path": place, "found": what})).collect::<Value>(),
        "osRelease": os_release,
        "package": package,
        "proposed_code": code::ORAS_PROPOSED,
    });
    // What is in the wrong place is put into the PATH of the scripts.
    let fatal = subject.needs_oras && !matches!(found, Found::NotInPath(_));
    let state = if fatal { State::Fatal } else { State::Warn };
    let mut finding = Finding::new("oras", state, &detail, data).because(Cause::BinaryMissing);
    finding.found = Some(found.word());
    finding.name = Some(code::ORAS);
    finding
}

fn probe(root: &Root, place: &str) -> String {
    match root.at(place).metadata() {
        Ok(data) => format!("present (mode {:04o})", data.permissions().mode() & 0o7777),
        Err(_) => "absent".to_owned(),
    }
}

/// What the package database says: rpm's where rpm is, else dpkg's.
fn package(root: &Root) -> String {
    let rpm = root.at("/usr/bin/rpm");
    let names = if rpm.is_file() {
        match answer(Command::new(rpm).arg("-qa")) {
            Ok(text) => {
                text.lines().filter(|line| line.contains("oras")).map(str::to_owned).collect()
            }
            Err(why) => return why.to_owned(),
        }
    } else {
        match store::tail(&root.dpkg_status(), 32 << 20) {
            Ok(text) => installed(&text),
            Err(_) => return "no package database".to_owned(),
        }
    };
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

/// Names and versions of the packages of dpkg that have oras in their name.
fn installed(status: &str) -> Vec<String> {
    let paragraphs = status.split("\n\n").filter(|text| text.contains("oras"));
    let field = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    paragraphs
        .filter_map(|text| {
            let name = field(text, "Package:").filter(|name| name.contains("oras"))?;
            let version = field(text, "Version:").unwrap_or_default();
            field(text, "Status:")
                .is_some_and(|status| status.ends_with(" installed"))
                .then(|| format!("{name}-{version}"))
        })
        .collect()
}

/// What a program prints, if it ends in time; if not, it is killed.
fn answer(command: &mut Command) -> Result<String, &'static str> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|_| "rpm cannot be run")?;
    let stdout = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(4 << 20).read_to_end(&mut text);
        }
        let _ = sender.send(text);
    });
    let text = receiver.recv_timeout(PACKAGES);
    let _ = child.kill();
    let _ = child.wait();
    text.map(|text| String::from_utf8_lossy(&text).into_owned()).map_err(|_| "rpm is late")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_of_that_name_count() {
        let status = "Package: bash\nStatus: install ok installed\nVersion: 5\n\nPackage: oras\nStatus: install ok installed\nVersion: 1.3.0\n\nPackage: oras-doc\nStatus: deinstall ok config-files\nVersion: 1\n";
        assert_eq!(installed(status), ["oras-1.3.0"]);
    }
}
