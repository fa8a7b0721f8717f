//! Rule `password-hash`.
//!
//! Removes: hashes of passwords in the forms of crypt (`$6$salt$hash`), of directories (`{SSHA}hash`)
//! and of PBKDF2, as user settings hold them; they can be guessed at leisure.
//!
//! Leaves alone: arguments of a shell, `$1$2`.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::value;

const RULE: &str = "password-hash";

/// The shortest hash has 22 letters and a salt.
const SHORTEST: usize = 24;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"./$=,+_-".contains(&byte)
}

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = value::end_of_letters(view, anchor.end, SHORTEST, is_letter);
    if end >= anchor.end + SHORTEST {
        scan.strike(anchor.start..end, RULE);
    }
}

/// Digits of a hash of Windows.
const NT_HASH: usize = 32;

/// At the end of `user:id:LM-HASH:NT-HASH:::`, as programs dump the accounts of Windows.
pub(in crate::redaction) fn examine_dump(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let Some(start) = anchor.start.checked_sub(2 * NT_HASH + 1) else { return };
    let hashes = view.slice(start..anchor.start);
    let is_hash = |hash: &[u8]| hash.iter().all(u8::is_ascii_hexdigit);
    let is_pair = hashes[NT_HASH] == b':';
    if is_pair && is_hash(&hashes[..NT_HASH]) && is_hash(&hashes[NT_HASH + 1..]) {
        scan.strike(start..anchor.start, RULE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_hash_goes_with_its_salt() {
        let line = "bob:$6$saltsalt$Kd8fj3Jd93jfkdJFK39fj3kdjfKDJF93jfkdjf.83:19000:0:";
        assert_eq!(redacted(line), "bob:[redacted password-hash]:19000:0:");
    }

    #[test]
    fn arguments_of_a_shell_stay() {
        assert_kept(&["echo $1$2", "$6$ and $5$"]);
    }
}
