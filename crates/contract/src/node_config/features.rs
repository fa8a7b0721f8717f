//! Names of variables: which may be passed to the scripts, and which a feature may use.

use std::collections::BTreeMap;

use super::derived::DERIVED;
use super::variables::PLAIN;

const NEVER: &[&str] =
    &["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "CDPATH", "GLOBIGNORE"];

/// Whether a variable changes the behaviour of a shell or of the dynamic linker.
pub fn never_passed(name: &str) -> bool {
    name.starts_with("LD_") || name.starts_with("BASH_FUNC_") || NEVER.contains(&name)
}

/// Whether a variable is made from the configuration.
pub fn is_made(name: &str) -> bool {
    let listed = |count: &str| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    PLAIN.iter().any(|(made, _)| *made == name)
        || DERIVED.iter().any(|(made, _)| *made == name)
        || name == "MCR_REPOSITORY_BASE"
        || name.strip_prefix("CUSTOM_CA_CERT_").is_some_and(listed)
}

/// Whether a feature may have this name.
pub fn is_feature(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(word)
        && name != "PATH"
        && !never_passed(name)
        && !is_made(name)
}

/// The features that can be passed on, and the names of the rejected features.
pub(super) fn sorted_out(features: &BTreeMap<String, String>) -> (String, Vec<String>) {
    let mut file = String::new();
    let mut dropped = Vec::new();
    for (name, value) in features {
        if is_feature(name) && !value.contains(['\r', '\n']) {
            file.extend([name.as_str(), "=", value.as_str(), "\n"]);
        } else {
            dropped.push(super::notice::shown(name));
        }
    }
    (file, dropped)
}
