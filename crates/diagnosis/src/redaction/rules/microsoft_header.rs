//! Rule `microsoft-header`.
//!
//! Removes: values of `x-ms-…` headers that look like a key or a token; Azure's services pass both
//! in headers of that kind.
//!
//! Leaves alone: request ids, limits, dates, versions: what Microsoft's support asks for.

use std::ops::Range;

use super::named_value;
use crate::redaction::name::Name;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;

const RULE: &str = "microsoft-header";

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let name = Name::around(view, anchor, scan.resume());
    let Some(start) = named_value::value_start(view, name.range.end) else { return };
    let range = value::at(view, start).range;
    let text = view.slice(range.clone());
    let mut parts = text.split(|byte| b":-, ;/.".contains(byte));
    let is_long = text.len() > shape::LONGEST_HARMLESS;
    if is_long || !shape::is_harmless(text) && parts.any(shape::is_key_like) {
        scan.strike(range, RULE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_key_in_a_header_goes() {
        let text = "x-ms-encryption-key: aB3dE5gH7jK9mN1pQ3sT5vW7y\n";
        assert_eq!(redacted(text), "x-ms-encryption-key: [redacted microsoft-header]\n");
    }

    #[test]
    fn what_support_asks_for_stays() {
        assert_kept(&[
            "x-ms-request-id: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
            "x-ms-routing-request-id: EASTUS2:20250912T083351Z:0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
            "x-ms-ratelimit-remaining-resource: Microsoft.Compute/GetVMScaleSet3Min;237",
        ]);
    }
}
