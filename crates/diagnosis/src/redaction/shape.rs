//! What a piece of text looks like: a key, a word, a path, a time.
//!
//! All functions are about bytes of the view, and bounded by the length of what they are given.

/// How letters are mixed in a piece of text.
#[derive(Clone, Copy, Default)]
pub(super) struct Mix {
    pub(super) length: usize,
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    /// How often a letter of one kind (lower, upper, digit) follows one of another kind.
    pub(super) changes: usize,
    /// Letters in a row of three or more small ones, as words have them.
    in_words: usize,
    /// Hyphens and underscores, as names have them between their words.
    joints: usize,
}

impl Mix {
    pub(super) fn of(text: &[u8]) -> Self {
        super::work::add(text.len());
        let mut mix = Self { length: text.len(), ..Self::default() };
        let mut previous = 0;
        let mut row = 0;
        for &byte in text {
            let kind = match byte {
                b'a'..=b'z' => 1,
                b'A'..=b'Z' => 2,
                b'0'..=b'9' => 3,
                _ => 0,
            };
            mix.lower += usize::from(kind == 1);
            mix.upper += usize::from(kind == 2);
            mix.digits += usize::from(kind == 3);
            mix.joints += usize::from(matches!(byte, b'-' | b'_'));
            mix.changes += usize::from(kind != 0 && previous != 0 && kind != previous);
            row = if kind == 1 { row + 1 } else { 0 };
            mix.in_words += match row {
                0..3 => 0,
                3 => 3,
                _ => 1,
            };
            previous = kind;
        }
        mix
    }

    /// Whether a generator rather than a person chose the letters. Of random letters every second
    /// differs in kind from the one before, and few are in a row of small ones; of a name such as
    /// `virtualMachineScaleSets` it is the other way round.
    pub(super) fn is_random(self) -> bool {
        self.digits > 0 && self.is_random_without_digits()
    }

    /// The same where other signs of a key make up for missing digits.
    pub(super) fn is_random_without_digits(self) -> bool {
        self.lower > 0
            && self.upper > 0
            && self.changes * 5 >= self.length
            && self.in_words * 9 < self.length * 5
            && (self.joints * 8 <= self.length || self.changes * 3 >= self.length - self.joints)
    }

    /// Whether it could be base64 of anything, judged generously: cheap to rule out most names.
    pub(super) fn could_be_encoded(self) -> bool {
        self.lower > 0 && self.upper > 0 && self.changes * 6 >= self.length
    }
}

/// No word is longer, hyphens included.
const LONGEST_WORD: usize = 48;

/// A word as people write it: `token`, `Token`, `TOKEN`; hyphens and underscores allowed inside.
pub(super) fn is_word(text: &[u8]) -> bool {
    let letters = |rest: &[u8], ok: fn(&u8) -> bool| {
        rest.iter().all(|byte| ok(byte) || matches!(byte, b'-' | b'_' | b'\''))
    };
    match text {
        [] => false,
        _ if text.len() > LONGEST_WORD => false,
        [first, rest @ ..] if first.is_ascii_uppercase() => {
            letters(rest, u8::is_ascii_lowercase) || letters(rest, u8::is_ascii_uppercase)
        }
        [first, rest @ ..] => first.is_ascii_lowercase() && letters(rest, u8::is_ascii_lowercase),
    }
}

/// Words joined by capitals: `MountVolume`, `readOnlyPort`.
pub(super) fn is_camel_case(text: &[u8]) -> bool {
    let mut small = 0;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' => small += 1,
            b'A'..=b'Z' if index == 0 || small > 0 => small = 0,
            _ => return false,
        }
    }
    small > 0 && text.len() >= 6
}

/// An identifier of a program: `EnvironmentCredential`, `retry_count`.
pub(super) fn is_identifier(text: &[u8]) -> bool {
    text.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

pub(super) fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `2025-09-12…`, `24h0m0s`, `08:33:51`.
pub(super) fn is_time(text: &[u8]) -> bool {
    let digits = |range: std::ops::Range<usize>| text.get(range).is_some_and(is_number);
    let date = digits(0..4) && text.get(4) == Some(&b'-') && digits(5..7);
    let clock = digits(0..2) && text.get(2) == Some(&b':') && digits(3..5);
    let duration = text.first().is_some_and(u8::is_ascii_digit)
        && text.last().is_some_and(|last| b"smhd".contains(last))
        && text.len() <= 16
        && text.iter().all(|byte| byte.is_ascii_digit() || b".smhdun".contains(byte));
    date || clock || duration
}

/// `v1.32.4`, `202601.27.0`.
pub(super) fn is_version(text: &[u8]) -> bool {
    let numbers = text.strip_prefix(b"v").unwrap_or(text);
    numbers.contains(&b'.') && numbers.split(|byte| *byte == b'.').all(is_number)
}

/// An absolute path of Linux or Windows, of names a person would choose.
pub(super) fn is_path(text: &[u8]) -> bool {
    let body = match text {
        [b'/', b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'_', ..] => text,
        [drive, b':', b'\\' | b'/', rest @ ..] if drive.is_ascii_alphabetic() => rest,
        _ => return false,
    };
    body.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/\\._-:,* {}$@()".contains(byte))
        && !body.split(|byte| b"/\\._-".contains(byte)).any(is_key_like)
        && !Mix::of(body).is_random()
}

/// A file by its ending: `admin.key`, `certs/client.pem`.
pub(super) fn is_file_name(text: &[u8]) -> bool {
    const ENDINGS: &str =
        ".key .pem .crt .cer .json .yaml .yml .conf .toml .txt .sh .ps1 .tar.gz .zip";
    let mut endings = ENDINGS.split_ascii_whitespace().map(str::as_bytes);
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(byte))
        && endings.any(|ending| text.ends_with(ending))
        && !Mix::of(text).is_random()
}

/// A web address; what is secret inside it has rules of its own.
pub(super) fn is_address(text: &[u8]) -> bool {
    let scheme = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    scheme >= 2 && text[scheme..].starts_with(b"://")
}

/// Long and random enough to be a key whatever stands before it.
pub(super) fn is_key_like(text: &[u8]) -> bool {
    text.len() >= 20 && Mix::of(text).is_random()
}

/// Whether it could be a key rather than a name, a number or a sentence: 16 letters or more without
/// words, a GUID, or a number in hexadecimal digits.
pub(super) fn is_opaque(text: &[u8]) -> bool {
    let text = &text[..text.len().min(LONGEST_HARMLESS)];
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_%~.-".contains(byte);
    let mix = Mix::of(text);
    let letters = text.len() - mix.joints;
    text.len() >= 16
        && text.iter().all(is_letter)
        && mix.digits >= 2
        && mix.digits < letters
        && !(is_time(text) || is_version(text) || is_path(text) || is_digest(text))
        && (is_hexadecimal(text) || is_guid(text) || mix.changes * 5 >= letters)
}

/// Hexadecimal digits of one case, as many as a key or a hash has.
pub(super) fn is_hexadecimal(text: &[u8]) -> bool {
    text.len() >= 16
        && text.iter().all(u8::is_ascii_hexdigit)
        && !(text.iter().any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase))
}

/// `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`.
pub(super) fn is_guid(text: &[u8]) -> bool {
    let is_right = |(index, byte): (usize, &u8)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.iter().enumerate().all(is_right)
}

/// Whether a person made it by the rules for passwords: small and capital letters, digits, and a
/// mark between them.
pub(super) fn is_complex(text: &[u8]) -> bool {
    const MARKS: &[u8] = b"!#%*?^$@&+~";
    let mix = Mix::of(text);
    let marks = text.iter().filter(|byte| MARKS.contains(byte)).count();
    (8..=64).contains(&text.len())
        && mix.lower >= 2
        && mix.upper >= 1
        && mix.digits >= 1
        && (1..=4).contains(&marks)
        && mix.lower + mix.upper + mix.digits + marks + mix.joints == text.len()
}

/// A longer value is not believed to be harmless, whatever it looks like.
pub(super) const LONGEST_HARMLESS: usize = 512;

/// A value that is a word of a configuration, not a secret: `true`, `null`, `***`, `${TOKEN}`.
pub(super) fn is_harmless(value: &[u8]) -> bool {
    const WORDS: &str = "true false yes no on off null none nil undefined n/a unset set bearer basic \
        required optional disabled enabled redacted hidden masked amd64 arm64 i386";
    let mut words = WORDS.split_ascii_whitespace().map(str::as_bytes);
    let is_harmless = value.is_empty()
        || (is_number(value) && value.len() <= 5)
        || value.iter().all(u8::is_ascii_punctuation)
        || words.any(|word| value.eq_ignore_ascii_case(word))
        || is_placeholder(value)
        || is_digest(value)
        || is_time(value)
        || is_version(value)
        || is_path(value)
        || is_file_name(value)
        || is_address(value);
    is_harmless && value.len() <= LONGEST_HARMLESS
}

/// A value that is no password although it has a password's name. Whatever could be one goes, also
/// paths, numbers and addresses.
pub(super) fn is_no_password(value: &[u8]) -> bool {
    const WORDS: &str = "true false yes no y n null none nil n/a undefined redacted hidden masked";
    let mut words = WORDS.split_ascii_whitespace().map(str::as_bytes);
    let is_elsewhere =
        ["file:", "env:", "fd:", "stdin"].iter().any(|start| value.starts_with(start.as_bytes()));
    let is_harmless = value.iter().all(u8::is_ascii_punctuation)
        || words.any(|word| value.eq_ignore_ascii_case(word))
        || is_elsewhere
        || is_command(value)
        || is_reference(value);
    is_harmless && value.len() <= LONGEST_HARMLESS
}

/// The beginning of a command in brackets: `(ConvertTo-SecureString`.
fn is_command(value: &[u8]) -> bool {
    value.strip_prefix(b"(").is_some_and(|command| {
        let parts: Vec<&[u8]> = command.split(|byte| *byte == b'-').collect();
        parts.len() == 2
            && parts.iter().all(|part| {
                part.len() > 2
                    && part[0].is_ascii_uppercase()
                    && part.iter().all(u8::is_ascii_alphabetic)
            })
    })
}

/// A placeholder that cannot be a password in brackets.
fn is_reference(value: &[u8]) -> bool {
    const WORDS: &str = "pass token secret key pw your user value redacted hidden masked removed \
        sensitive nil none empty unset string credential";
    let says_so = |inner: &[u8]| {
        let inner = inner.to_ascii_lowercase();
        let mut words = WORDS.split_ascii_whitespace();
        words.any(|word| memchr::memmem::find(&inner, word.as_bytes()).is_some())
    };
    match value {
        [b'$', b'{', inner @ .., b'}'] => {
            let name = inner.iter().position(|byte| b":-=?+#%/".contains(byte));
            let (name, rest) = inner.split_at(name.unwrap_or(inner.len()));
            let is_operator = match rest {
                [b':', operator, ..] => b"-=?+".contains(operator),
                _ => true,
            };
            is_variable(name) && is_operator
        }
        [b'$', b'(', inner @ .., b')'] => {
            // A command has several words; one with digits is none.
            let is_command = inner.iter().any(|byte| b" /".contains(byte)) || is_variable(inner);
            is_placeholder(value) && (is_command || !inner.iter().any(u8::is_ascii_digit))
        }
        [b'<', inner @ .., b'>'] | [b'[', inner @ .., b']'] => says_so(inner),
        _ => is_placeholder(value),
    }
}

/// `sha256:…`: names content, opens nothing.
pub(super) fn is_digest(value: &[u8]) -> bool {
    let is_kind = |kind: &[u8]| matches!(kind, b"256" | b"384" | b"512");
    match value {
        [b's' | b'S', b'h' | b'H', b'a' | b'A', kind @ ..] if kind.len() > 4 => {
            is_kind(&kind[..3]) && matches!(kind[3], b':' | b'-')
        }
        _ => false,
    }
}

/// Something that stands for a value: `$TOKEN`, `$(cat f)`, `<token>`, `{{ .Token }}`, a marker.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    match value {
        // A command with a text in it may hold the value itself.
        [b'$', b'(', inner @ ..] => !inner.iter().any(|byte| b"\"'`".contains(byte)),
        [b'{', b'{', inner @ ..] => is_template(inner),
        [b'$', b'{', inner @ .., b'}'] => {
            is_variable(inner) || inner.iter().any(|byte| b":-#%/".contains(byte))
        }
        [b'$', b'e', b'n', b'v', b':', inner @ ..]
        | [b'$', inner @ ..]
        | [b'%', inner @ .., b'%'] => is_variable(inner),
        [b'<', inner @ .., b'>'] => {
            inner.iter().all(|byte| byte.is_ascii_alphabetic() || b" _-".contains(byte))
        }
        _ => value.contains(&super::view::REDACTED),
    }
}

/// What stands between the braces of a template: `.Values.token`, `$token`, `user.password`,
/// `token | quote`. A word with digits and without a sign of a template is none.
fn is_template(inner: &[u8]) -> bool {
    let inner = inner.strip_prefix(b"-").unwrap_or(inner);
    let names = inner.iter().position(|byte| *byte == b'}').map_or(inner, |end| &inner[..end]);
    let names = names.trim_ascii();
    let is_field = matches!(names, [b'.' | b'$', first, ..] if first.is_ascii_alphabetic());
    let mut parts = names.split(|byte| b" .|_-".contains(byte)).filter(|part| !part.is_empty());
    is_field && !names.iter().any(|byte| b"\"'`".contains(byte))
        || parts.all(|part| part.iter().all(u8::is_ascii_alphabetic))
}

/// A variable's name in one case; a password that begins with `$` rarely is.
fn is_variable(text: &[u8]) -> bool {
    let is_upper = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let is_lower = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    !text.is_empty() && (text.iter().all(is_upper) || text.iter().all(is_lower))
}

#[cfg(test)]
mod tests {
    use super::{Mix, is_camel_case, is_harmless, is_key_like, is_path, is_time, is_word};

    #[test]
    fn generated_letters_are_told_from_chosen_names() {
        assert!(is_key_like(b"n88sapGDCCgYlzbqAp5KQvZ50pqUKs"));
        assert!(!is_key_like(b"virtualMachineScaleSets/aks-nodepool1-vmss000001"));
        assert!(!is_key_like(b"MountVolumeSetUpFailedForVolume1"));
        assert!(!is_key_like(b"Standard_NC24ads_A100_v4_Standard_D8ds_v5"));
        assert!(!is_key_like(b"0f1e2d3c4b5a69788796a5b4c3d2e1f0"));
        assert!(!Mix::of(b"ERR_ORAS_PULL_NETWORK_TIMEOUT").could_be_encoded());
    }

    #[test]
    fn words_are_lower_upper_or_capitalised() {
        for word in ["failed", "Failed", "ERR_NO", "cloud-init", "can't"] {
            assert!(is_word(word.as_bytes()), "{word}");
        }
        for other in ["", "hunter2", "aBc", "abC", "a+b"] {
            assert!(!is_word(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn joined_words_are_told_from_keys() {
        assert!(is_camel_case(b"MountVolume") && is_camel_case(b"readOnlyPort"));
        assert!(!is_camel_case(b"QTBhYUBw") && !is_camel_case(b"abC") && !is_camel_case(b"ab3Cde"));
    }

    #[test]
    fn paths_of_chosen_names_are_paths_and_keys_with_a_slash_are_not() {
        assert!(is_path(b"/etc/kubernetes/azure.json"));
        assert!(is_path(br"C:\AzureData\provision.complete"));
        assert!(!is_path(b"/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9"));
    }

    #[test]
    fn harmless_values_are_recognised() {
        for value in [
            "",
            "true",
            "None",
            "443",
            "***",
            "$TOKEN",
            "$env:TOKEN",
            "${TOKEN:-}",
            "<token>",
            "24h0m0s",
            "v1.32.4",
            "certs/admin.key",
            "sha256:72c7",
            "/var/lib/kubelet",
            "https://mcr.example/v2/",
            "abcdef.\u{1}",
        ] {
            assert!(is_harmless(value.as_bytes()), "{value}");
        }
        for value in ["hunter2", "shav96-x", "letmein", "123456", "$Ecret1", "$(x \"a\")", "p@ss"] {
            assert!(!is_harmless(value.as_bytes()), "{value}");
        }
        assert!(is_time(b"2025-09-12T08:33:51Z"));
    }
}
