//! Values in sentences about them: `the password for bob is value`.

use super::separator::{is_mixed, next_text};
use crate::redaction::shape;
use crate::redaction::value::after_blanks;
use crate::redaction::view::View;

/// How far the verb is searched after the name.
const LONGEST: usize = 48;

/// Verbs after which any value is meant that no sentence goes on with.
const VERBS: [&[u8]; 4] = [b" is ", b" ist ", b" lautet ", b" est "];

/// What also joins other words of a sentence: only a value that is no word is meant.
const WEAK_VERBS: [&[u8]; 5] = [b" to ", b" es ", b" is: ", b": ", b" = "];

/// The value of a password whose name ends at `end`.
pub(super) fn of_password(view: &View, end: usize) -> Option<usize> {
    let strong = VERBS.iter().find_map(|verb| after_verb(view, end, verb));
    strong.or_else(|| {
        let starts = WEAK_VERBS.iter().filter_map(|verb| after_verb(view, end, verb));
        starts.into_iter().find(|start| is_mixed(next_text(view, *start)))
    })
}

/// The value of a token or key whose name ends at `end`.
pub(super) fn of_key(view: &View, end: usize) -> Option<usize> {
    let verbs = [&b" is "[..], b" is: "];
    let mut starts = verbs.iter().filter_map(|verb| after_verb(view, end, verb));
    starts.find(|start| shape::is_opaque(next_text(view, *start)))
}

/// Where the text after `verb` begins, if only words stand between the name and the verb.
fn after_verb(view: &View, end: usize, verb: &[u8]) -> Option<usize> {
    let limit = view.next_break(end + 1).min(end + LONGEST).max(end);
    let found = view.find(end..limit, verb)?;
    let is_between =
        |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b" '\"_-.@".contains(byte);
    let between = view.slice(end..end + found);
    between.iter().all(is_between).then(|| after_blanks(view, end + found + verb.len()))
}
