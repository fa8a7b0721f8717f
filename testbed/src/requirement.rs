//! Tests that need something which not every machine has.
//!
//! Crates that do not use the testbed have this file as a module of their tests.

use std::io::Write as _;

/// Names the requirements whose tests must run, separated by commas: without what they need, they
/// fail. For a machine that is known to have it.
pub const VARIABLE: &str = "BRINGUP_REQUIRE";

/// Prints why a test that needs `requirement` is skipped.
///
/// # Panics
///
/// If [`VARIABLE`] names the requirement.
pub fn skip(requirement: &str, why: &str) {
    let required = std::env::var(VARIABLE).unwrap_or_default();
    assert!(!is_named(requirement, &required), "{VARIABLE} names {requirement}, but {why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why} (requirement: {requirement})");
}

/// The first of these programs that is in no folder of `PATH`.
pub fn missing_program<'a>(names: &[&'a str]) -> Option<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|it| it.join(name).is_file());
    names.iter().copied().find(|name| !is_there(name))
}

/// Whether the list `required`, as [`VARIABLE`] holds one, names a requirement.
pub fn is_named(requirement: &str, required: &str) -> bool {
    required.split(',').any(|name| name.trim() == requirement)
}
