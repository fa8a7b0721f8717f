//! Requirements of tests that not every machine meets.
//!
//! Crates that do not use the testbed have this file as a module of their tests.

use std::io::Write as _;

/// Names the requirements whose tests must run, separated by commas: these tests fail instead of being
/// skipped. For machines that are known to meet the requirements.
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

/// The first of these programs that is missing from `PATH`.
pub fn missing_program<'a>(names: &[&'a str]) -> Option<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|it| it.join(name).is_file());
    names.iter().copied().find(|name| !is_there(name))
}

/// Whether `required`, a list in the format of [`VARIABLE`], contains a requirement.
pub fn is_named(requirement: &str, required: &str) -> bool {
    required.split(',').any(|name| name.trim() == requirement)
}
