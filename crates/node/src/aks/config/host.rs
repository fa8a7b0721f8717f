//! The properties of the machine on which the environment of the scripts depends, besides the configuration:
//! the installed containerd, and the drivers in the image.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bringup_contract::node_config::{Components, ContainerdSchema, Host};

use super::Rules;
use crate::aks::environment::Variables;
use crate::aks::result_files::go_error;
use crate::host::linux::store;
use crate::host::linux::subprocess::ask;
use crate::host::paths::Root;

/// The longest that `containerd --version` may take.
const CONTAINERD: Duration = Duration::from_secs(2);
/// The longest that the package database may take, when `containerd --version` fails.
const PACKAGES: Duration = Duration::from_millis(300);
/// The largest component list that is read.
const COMPONENTS: usize = 16 << 20;

/// The packages that install containerd.
const NAMES: &[&str] = &["moby-containerd", "containerd", "containerd.io", "containerd2"];

/// Inspects the machine; adds a warning to `reported` for everything unexpected.
pub(super) fn observe(
    root: &Root,
    inherited: &Variables,
    rules: &Rules,
    reported: &mut Vec<String>,
) -> Host {
    Host {
        containerd: containerd(root, inherited, reported),
        components: components(root),
        mcr_repository_base: rules.mcr_repository_base.clone(),
    }
}

fn components(root: &Root) -> Result<Components, String> {
    let path = root.components();
    let told = root.told(&path);
    let bytes = store::bytes(&path, COMPONENTS)
        .map_err(|error| format!("read {told}: {}", go_error(&error)))?;
    Components::parse(&bytes).map_err(|error| format!("parse {told}: {error}"))
}

/// The configuration schema that the installed containerd reads: from `containerd --version`, else from the
/// package, else the old schema, as upstream does.
fn containerd(root: &Root, inherited: &Variables, reported: &mut Vec<String>) -> ContainerdSchema {
    let said = match find(root, inherited, "containerd") {
        Some(program) => {
            ask(cleared(Command::new(program).arg("--version"), inherited), CONTAINERD)
        }
        None => Err("containerd is not in PATH".to_owned()),
    };
    let schema = said.as_ref().ok().and_then(|line| ContainerdSchema::of_version_output(line));
    if let Some(schema) = schema {
        return schema;
    }
    let why = said.err().unwrap_or_else(|| "containerd does not tell its version".to_owned());
    let package = packaged(root, inherited);
    let by = if package.is_some() { "the package" } else { "the rule for old ones" };
    reported.push(format!("{why}; its configuration is written by {by}"));
    package.unwrap_or(ContainerdSchema::A)
}

/// Finds a program in PATH, first under the root.
fn find(root: &Root, variables: &Variables, name: &str) -> Option<PathBuf> {
    let path = variables.iter().find(|(variable, _)| variable == "PATH");
    let path = path.map(|(_, path)| path.clone()).unwrap_or_default();
    let directories: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
    let inside = directories.iter().map(|directory| root.at(directory));
    let mut places = inside.chain(directories.iter().cloned()).map(|place| place.join(name));
    places.find(|place| {
        let data = place.metadata();
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// Sets these variables and removes all others.
fn cleared<'a>(command: &'a mut Command, variables: &Variables) -> &'a mut Command {
    command.env_clear().envs(variables.iter().cloned())
}

/// The schema from the package database: rpm's if rpm is installed, else dpkg's.
fn packaged(root: &Root, variables: &Variables) -> Option<ContainerdSchema> {
    let rpm = root.at("/usr/bin/rpm");
    let version = if rpm.is_file() {
        let all = ask(cleared(Command::new(rpm).arg("-qa"), variables), PACKAGES).ok()?;
        of_rpm(&all)
    } else {
        of_dpkg(&store::tail(&root.dpkg_status(), 32 << 20).ok()?)
    }?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    Some(if major >= 2 { ContainerdSchema::B } else { ContainerdSchema::A })
}

/// The version in `containerd2-2.0.0-1.azl3.x86_64`.
fn of_rpm(all: &str) -> Option<String> {
    all.lines().find_map(|line| {
        let version = NAMES.iter().find_map(|name| line.strip_prefix(name)?.strip_prefix('-'))?;
        version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
    })
}

fn of_dpkg(status: &str) -> Option<String> {
    status.split("\n\n").find_map(|paragraph| {
        let field =
            |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let named =
            NAMES.contains(&field("Package:")?) && field("Status:")?.ends_with(" installed");
        let version = field("Version:").filter(|_| named)?;
        // An epoch precedes a colon.
        Some(version.split_once(':').map_or(version, |(_, version)| version).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_tells_the_version_where_containerd_does_not() {
        let status = "Package: containerd-doc\nStatus: install ok installed\nVersion: 9.0\n\nPackage: moby-containerd\nStatus: install ok installed\nVersion: 1:2.0.4-ubuntu24.04u1\n";
        assert_eq!(of_dpkg(status).as_deref(), Some("2.0.4-ubuntu24.04u1"));
        assert_eq!(
            of_dpkg("Package: containerd\nStatus: deinstall ok config-files\nVersion: 1\n"),
            None
        );
        assert_eq!(
            of_rpm("bash-5.2\ncontainerd2-2.0.0-1.azl3.x86_64").as_deref(),
            Some("2.0.0-1.azl3.x86_64")
        );
        assert_eq!(of_rpm("containerd-doc-1.0"), None);
    }
}
