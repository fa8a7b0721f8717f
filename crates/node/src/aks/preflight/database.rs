//! The installed packages: from rpm's database if rpm is installed, else from dpkg's.

use std::process::Command;

use super::EACH;
use crate::host::linux::store;
use crate::host::linux::subprocess::ask;
use crate::host::paths::Root;

/// The installed packages as `name-version`, or why they are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Database(Result<Vec<String>, String>);

impl Database {
    /// Queries the database once.
    pub(super) fn ask(root: &Root) -> Self {
        let rpm = root.at("/usr/bin/rpm");
        Self(if rpm.is_file() {
            ask(Command::new(rpm).arg("-qa"), EACH)
                .map(|text| text.lines().map(str::to_owned).collect())
        } else {
            store::tail(&root.dpkg_status(), 32 << 20)
                .map(|text| installed(&text))
                .map_err(|_| "no package database".to_owned())
        })
    }

    /// A sentence about the packages whose name contains `name`.
    pub(super) fn has(&self, name: &str) -> String {
        match &self.0 {
            Ok(all) => {
                let found: Vec<&str> = all
                    .iter()
                    .map(String::as_str)
                    .filter(|package| package.contains(name))
                    .collect();
                if found.is_empty() { "none".to_owned() } else { found.join(" ") }
            }
            Err(why) => why.clone(),
        }
    }
}

/// Names and versions of the packages that dpkg has installed.
fn installed(status: &str) -> Vec<String> {
    let field = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let packages = status.split("\n\n").filter_map(|text| {
        let name = field(text, "Package:")?;
        let version = field(text, "Version:").unwrap_or_default();
        let is_there = field(text, "Status:").is_some_and(|status| status.ends_with(" installed"));
        is_there.then(|| format!("{name}-{version}"))
    });
    packages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_of_that_name_count() {
        let status = "Package: bash\nStatus: install ok installed\nVersion: 5\n\nPackage: oras\nStatus: install ok installed\nVersion: 1.3.0\n\nPackage: oras-doc\nStatus: deinstall ok config-files\nVersion: 1\n";
        let database = Database(Ok(installed(status)));
        assert_eq!(database.has("oras"), "oras-1.3.0");
        assert_eq!(database.has("jq"), "none");
        assert_eq!(Database(Err("late".to_owned())).has("oras"), "late");
    }
}
