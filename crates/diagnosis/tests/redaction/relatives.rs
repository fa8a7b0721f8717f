//! Relatives of the known forms: other vendors, programs, languages and spellings, and sentences that
//! only speak of secrets. What stands between `«` and `»` must not survive.

use bringup_diagnosis::redaction::redact;

use super::shapes::survivors;

#[path = "relatives/commands.rs"]
mod commands;
#[path = "relatives/documents.rs"]
mod documents;
#[path = "relatives/kin.rs"]
mod kin;
#[path = "relatives/prose.rs"]
mod prose;
#[path = "relatives/strings.rs"]
mod strings;
#[path = "relatives/survivors.rs"]
mod survivors_by_decision;
#[path = "relatives/tokens.rs"]
mod tokens;
#[path = "relatives/unseen.rs"]
mod unseen;

fn assert_none_survives(shapes: &[&str]) {
    let survivors = survivors(shapes);
    assert!(
        survivors.is_empty(),
        "{} of {} survive:\n{}",
        survivors.len(),
        shapes.len(),
        survivors.join("\n")
    );
}

#[test]
fn command_lines_of_registries_clusters_and_clouds_lose_their_secrets() {
    assert_none_survives(commands::CLOUD);
}

#[test]
fn command_lines_of_systems_lose_their_secrets() {
    assert_none_survives(commands::SYSTEM);
}

#[test]
fn command_lines_of_windows_lose_their_secrets() {
    assert_none_survives(commands::WINDOWS);
}

#[test]
fn documents_lose_their_secrets() {
    assert_none_survives(documents::DOCUMENTS);
}

#[test]
fn addresses_and_connection_strings_lose_their_secrets() {
    assert_none_survives(strings::ADDRESSES);
}

#[test]
fn headers_lose_their_secrets() {
    assert_none_survives(strings::HEADERS);
}

#[test]
fn names_in_other_languages_and_spellings_lose_their_values() {
    assert_none_survives(strings::NAMES);
}

#[test]
fn tokens_of_vendors_are_removed_without_a_name() {
    assert_none_survives(tokens::TOKENS);
}

#[test]
fn keys_and_hashes_are_removed() {
    assert_none_survives(tokens::KEYS);
}

#[test]
fn logs_that_wrap_a_secret_lose_it() {
    assert_none_survives(tokens::WRAPPED);
}

#[test]
fn forms_by_a_writer_who_had_not_seen_the_rules_are_removed() {
    assert_none_survives(unseen::SURVIVED);
    assert_none_survives(unseen::REMOVED);
}

#[test]
fn relatives_of_the_forms_that_survived_are_removed() {
    assert_none_survives(kin::KIN);
}

#[test]
fn sentences_about_secrets_stay_as_they_are() {
    let changed: Vec<String> = prose::PROSE
        .iter()
        .filter(|line| redact(line).text.as_str() != **line)
        .map(|line| format!("{line:?} -> {:?}", redact(line).text.as_str()))
        .collect();
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn the_list_of_what_survives_is_up_to_date() {
    let shapes = survivors_by_decision::SURVIVORS;
    assert_eq!(survivors(shapes).len(), shapes.len(), "{:#?}", survivors(shapes));
}
