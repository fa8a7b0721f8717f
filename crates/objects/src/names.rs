//! Names that are the same, whichever process makes them: a second attempt to create is then no
//! second object.

use sha2::{Digest as _, Sha256};

/// The longest name of an object.
const LONGEST: usize = 253;
/// How many hexadecimal digits tell namesakes apart.
const DIGITS: usize = 10;

/// `<stem><separator><ten digits of the parts' hash>`. The stem is cut where the whole would be
/// too long. A stem that is no name of an object is left out: it may come from an object's field.
pub fn stable(stem: &str, separator: char, parts: &[&str]) -> String {
    let room = LONGEST - DIGITS - 1;
    let stem = stem[..stem.floor_char_boundary(room)].trim_end_matches(['.', '-']);
    let stem = if is_name(stem) { stem } else { "bringup" };
    format!("{stem}{separator}{}", digest(parts))
}

/// Whether the API server takes it as a name.
fn is_name(text: &str) -> bool {
    text.split('.').all(|part| {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        part.starts_with(is_letter)
            && part.ends_with(is_letter)
            && part.chars().all(|letter| is_letter(letter) || letter == '-')
    })
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        // So that the parts "a", "bc" and "ab", "c" differ.
        hash.update([0]);
    }
    hexadecimal(&hash.finalize()[..DIGITS / 2])
}

/// All of a text's hash, for text that is not kept.
pub fn fingerprint(text: &str) -> String {
    hexadecimal(&Sha256::digest(text.as_bytes()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A text as a label's value: other letters become `-`, and it is cut to 63.
pub fn label(text: &str) -> String {
    let kept: String =
        text.chars()
            .take(63)
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' }
            })
            .collect();
    kept.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_depends_on_every_part_and_on_nothing_else() {
        let name = stable("default-x7k2p", '-', &["uid", "vm", "1"]);
        assert_eq!(name, stable("default-x7k2p", '-', &["uid", "vm", "1"]));
        assert_ne!(name, stable("default-x7k2p", '-', &["uid", "vm1", ""]));
        assert!(name.starts_with("default-x7k2p-"), "{name}");
    }

    #[test]
    fn a_long_stem_is_cut_and_the_name_stays_valid() {
        let name = stable(&"a.".repeat(200), '.', &["uid"]);
        assert!(name.len() <= LONGEST && !name.contains(".."), "{name}");
    }

    #[test]
    fn a_stem_that_is_no_name_makes_a_name_all_the_same() {
        for stem in ["", "-", "UPPER_case.-", "a/b:c d", "a..b", "é", ".a"] {
            let name = stable(stem, '.', &["uid"]);
            assert!(name.starts_with("bringup.") && is_name(&name), "{stem}: {name}");
        }
    }

    #[test]
    fn any_text_makes_a_label() {
        assert_eq!(label("202601.27.0"), "202601.27.0");
        assert_eq!(label("/a b/"), "a-b");
        assert_eq!(label("é"), "");
        assert_eq!(label(&"x".repeat(80)).len(), 63);
    }
}
