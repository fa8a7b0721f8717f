//! Rule `kubernetes-secret`.
//!
//! Removes: every value under `data` and `stringData` of a Secret of Kubernetes, in YAML and in JSON,
//! before and after the line that says its kind. The names of its keys say nothing about them.
//!
//! Leaves alone: the names of the keys, the metadata, and other kinds of objects.

use std::ops::Range;

use super::named_value::{collection, value_start};
use crate::redaction::scan::{Look, Scan};
use crate::redaction::view::View;

const RULE: &str = "kubernetes-secret";

/// How far from its kind the data of a Secret is searched.
const LONGEST: usize = 16 * 1024;

/// The names of the members with secrets in them.
const MEMBERS: [&[u8]; 2] = [b"data", b"stringData"];

/// Whether `name` is the value of `kind`: `kind: Secret`, `"kind":"Secret"`.
pub(super) fn is_kind(view: &View, name: &Range<usize>) -> bool {
    let before = view.slice(name.start.saturating_sub(16)..name.start);
    let letters = before.iter().filter(|byte| !b" \"':".contains(byte));
    let folded: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
    folded.ends_with(b"kind") && matches!(name.len(), 6 | 10) && before.contains(&b':')
}

/// At the kind.
pub(super) fn examine(scan: &mut Scan<'_>, kind: Range<usize>) {
    let view = scan.view;
    let floor = kind.start.saturating_sub(LONGEST);
    let start =
        (floor..=kind.start).find(|at| scan.is_new(Look::Manifest, *at)).unwrap_or(kind.start);
    let limit = view.len().min(kind.end + LONGEST);
    let next = view.find(kind.end..limit, b"kind");
    let end = next.map_or(limit, |at| kind.end + at);
    scan.note(Look::Manifest, end);
    scan.skip_to(kind.end);
    let mut from = start;
    while let Some(found) = view.find(from..end, b"ata") {
        let member_end = from + found + b"ata".len();
        from = member_end;
        if is_member(view, member_end)
            && let Some(start) = value_start(view, member_end)
        {
            strike_data(scan, start);
        }
    }
}

/// Whether the name that ends at `end` is one of the members, whole.
fn is_member(view: &View, end: usize) -> bool {
    MEMBERS.iter().any(|member| {
        end.checked_sub(member.len()).is_some_and(|start| {
            let before = view.before(start);
            let begins = view.is_break(start) || start == 0 || !before.is_ascii_alphanumeric();
            begins && !b"_-.".contains(&before) && view.slice(start..end) == *member
        })
    })
}

/// Removes what begins at `start`: an object, or lines of YAML.
fn strike_data(scan: &mut Scan<'_>, start: usize) {
    let view = scan.view;
    if view.at(start) == b'{' {
        collection::strike_members(scan, start, RULE);
        return;
    }
    collection::strike_lines(scan, start, RULE);
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn every_value_goes_and_the_names_stay() {
        let marker = "[redacted kubernetes-secret]";
        assert_eq!(
            redacted("kind: Secret\ndata:\n  a: aHVudGVy\n  b: |\n    hunter\ntype: Opaque\n"),
            format!("kind: Secret\ndata:\n  a: {marker}\n  b: |\n    {marker}\ntype: Opaque\n")
        );
        assert_eq!(
            redacted("{\"data\":{\"a\":\"aHVudGVy\"},\"kind\":\"Secret\",\"type\":\"Opaque\"}"),
            format!("{{\"data\":{{\"a\":\"{marker}\"}},\"kind\":\"Secret\",\"type\":\"Opaque\"}}")
        );
    }

    #[test]
    fn other_kinds_stay() {
        assert_kept(&[
            "kind: ConfigMap\ndata:\n  a: plain\n",
            "kind: SecretProviderClass\nspec:\n  provider: azure\n",
            "object kind: Secret not found",
        ]);
    }
}
