//! Values in sentences about them: `the password for bob is value`.

use super::separator::{is_mixed, next_text};
use crate::redaction::name::Name;
use crate::redaction::shape;
use crate::redaction::value::after_blanks;
use crate::redaction::view::View;
use crate::redaction::words::{self, Kind};

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

/// The value after a name in another language and more words: `Пароль администратора: value`. English
/// sentences have no such words, so any value is meant.
pub(super) fn of_foreign(view: &View, name: &Name<'_>, kind: Kind) -> Option<usize> {
    const MARKS: [&[u8]; 4] = [b"=", b": ", b" : ", b":"];
    let end = name.range.end;
    let text = view.slice(name.range.clone());
    let is_foreign = words::FOREIGN_PASSWORDS
        .iter()
        .copied()
        .chain(words::FOREIGN_SECRETS.iter().map(|(word, _)| *word))
        .any(|word| {
            memchr::memmem::find(text, word.as_bytes()).is_some()
                || text.len() == word.len() && text.eq_ignore_ascii_case(word.as_bytes())
        });
    if !is_foreign || kind == Kind::Weak {
        return None;
    }
    // Chinese writes the verb beside the name.
    let verb = ["是", "为", "為"]
        .iter()
        .find_map(|verb| memchr::memmem::find(text, verb.as_bytes()).map(|at| at + verb.len()));
    if let Some(verb) = verb.filter(|verb| *verb < text.len()) {
        return Some(name.range.start + verb);
    }
    let limit = view.next_break(end + 1).min(end + LONGEST).max(end);
    let between = view.slice(end..limit);
    let words = between
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii() || b" '".contains(byte));
    let mark = end + words.count();
    let mark = MARKS
        .iter()
        .find(|text| view.bytes()[mark.min(view.len())..].starts_with(text))
        .map(|text| mark + text.len())?;
    let start = after_blanks(view, mark);
    (start < view.len() && !view.is_break(start)).then_some(start)
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
