//! Rule `agent-token`.
//!
//! Removes: the password in a join token of RKE2 or k3s, `K10<hash>::server:<password>`, wherever it
//! stands. With it anyone can join the cluster, as a server too.
//!
//! Leaves alone: `::server` and `::node` in names of modules and in addresses.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::value;

/// Shorter passwords are not made; shorter words stand in paths of modules.
const SHORTEST: usize = 8;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=!$%*?@#&^".contains(&byte)
}

/// At `::server:` and `::node:`.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let start = anchor.end;
    let mut end = value::end_of_letters(scan.view, start, SHORTEST, is_letter);
    while scan.view.before(end) == b'.' {
        end -= 1;
    }
    if end >= start + SHORTEST {
        scan.strike(start..end, "agent-token");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn the_password_goes_whatever_stands_before_it() {
        for (text, expected) in [
            (
                "use K10ab::server:hunter2-hunter2 now",
                "use K10ab::server:[redacted agent-token] now",
            ),
            ("'K10ab::node:0123456789abcdef'", "'K10ab::node:[redacted agent-token]'"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn paths_and_addresses_stay() {
        assert_kept(&[
            "at tonic::server::Grpc<T>: closed",
            "app::server: listening on [::1]:8443",
            "crate::node:12: not found",
        ]);
    }
}
