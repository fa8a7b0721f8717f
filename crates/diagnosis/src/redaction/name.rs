//! Which names have a secret as their value.

use std::cell::OnceCell;
use std::ops::Range;

use super::view::View;
use super::wrap;

/// The longest name that is looked at, to each side of its anchor.
const LONGEST: usize = 80;

/// Words after which a name no longer names the secret itself: `TOKEN_TTL`, `secretName`.
const ABOUT: &str = "ttl type name names namespace file filepath path dir directory url urls \
    uri endpoint expiry cacerthash prompt length count size class version ref refs format policy status \
    kind issuer audience scope algorithm stdin server attempt retries \
    lifetime duration seconds interval limit age usage history complexity strength required \
    lastset lastchanged createdat updatedat issuedat neverexpires service controller operator manager";

/// Those of three letters that also end longer names.
const ABOUT_ENDINGS: [&[u8]; 5] = [b"ttl", b"url", b"uri", b"dir", b"ref"];

/// How files of source code end.
const SOURCES: [&[u8]; 8] = [b".go", b".py", b".rs", b".cs", b".ps1", b".sh", b".js", b".java"];

/// The same for tokens and keys only: the id of a secret can be one itself.
const ABOUT_TOKENS: &str = "id ids";

/// How such words begin, when more may follow.
const ABOUT_PREFIXES: &str =
    "provider expir rotat request review timeout volume from crypt gallery izer ized ization";

/// Words that with `key` name a secret key.
const KEYS: &str = "privatekey apikey accesskey accountkey sharedkey storagekey primarykey \
    secondarykey clientkey keydata signingkey encryptionkey certificatekey masterkey \
    subscriptionkey functionkey functionskey workspacekey serverkey agentkey adminkey keymaterial authkey \
    activationkey recoverykey unsealkey unlockkey decryptionkey sessionkey enrollmentkey joinkey \
    integrationkey applicationkey appkey writekey ingestkey productkey";

/// Keys whose files programs are told by the same name.
const KEY_FILES: &str = "privatekey clientkey serverkey signingkey encryptionkey tlskey sslkey";

/// Words that with `key` name a public one, or none at all.
const PUBLIC_KEYS: &str = "public pubkey hostkey sshkey authorizedkey gpgkey aptkey keykey";

/// Names that end with `content` and have a key or a client secret as their value.
const CONTENTS: &str = "clientcontent principalfilecontent";

/// Names that are a secret only as a whole, since their last word is common.
const AUTHENTICATIONS: &str =
    "auth rediscliauth registryauth xregistryauth xregistryconfig dockerauth dockerauthconfig";

/// A name around an anchor, as it stands in the text: `TLS_BOOTSTRAP_TOKEN`, `--client-secret`.
pub(super) struct Name<'a> {
    /// On the line of its anchor.
    pub(super) range: Range<usize>,
    /// With the lines before that it began on, if those were wrapped.
    wide: Range<usize>,
    view: &'a View,
    anchor: Range<usize>,
    flat: OnceCell<[Vec<u8>; 2]>,
}

/// A letter of a name. A dot joins names of a path: `nodeRegistration.token`. Letters beyond ASCII
/// belong to names in other languages.
pub(super) fn is_name_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || !byte.is_ascii()
}

impl<'a> Name<'a> {
    /// The name around `anchor`. It does not go back before `from`.
    pub(super) fn around(view: &'a View, anchor: Range<usize>, from: usize) -> Self {
        // A name of two words may have been looked at as another one.
        let floor = from.max(anchor.start.saturating_sub(LONGEST)).min(anchor.start);
        let before = view.slice(floor..anchor.start);
        let letters = before.iter().rev().take_while(|byte| is_name_letter(**byte)).count();
        let anchor = anchor.start..end_of_word(view, &anchor);
        let limit = anchor.start - letters;
        let start = limit.max(view.line_start(anchor.start + 1));
        let mut wide = start;
        while wide > limit && wrap::has_equal_width(view, wide) {
            wide = limit.max(view.line_start(wide));
        }
        let end = end_of_letters(view, anchor.end);
        Self { range: start..end, wide: wide..end, view, anchor, flat: OnceCell::new() }
    }

    /// The name on its line and the wide one, in lower case, without what joins their words; with
    /// the word before it, if it is only `key`.
    fn flat(&self) -> &[Vec<u8>; 2] {
        self.flat.get_or_init(|| {
            let wide = flattened(self.view.slice(self.wide.clone()));
            let flat = flattened(self.view.slice(self.range.clone()));
            let start = self.range.start;
            if flat != b"key" || self.view.before(start) != b' ' {
                return [flat, wide];
            }
            let before = self.view.slice(start.saturating_sub(LONGEST)..start - 1);
            let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
            [[flattened(&before[before.len() - letters..]), flat].concat(), wide]
        })
    }

    /// Whether it is a name of a program rather than a word of a sentence: several words joined, as in
    /// `db_password`, `authToken` and `spring.password`, or capital letters only. Hyphens also join the
    /// names of programs, which sentences follow.
    pub(super) fn is_identifier(&self) -> bool {
        let name = self.view.slice(self.range.clone());
        let joins = name.windows(2).any(|pair| {
            b"_.".contains(&pair[0]) && pair[1].is_ascii_alphanumeric()
                || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
        });
        joins || name.len() > 2 && !name.iter().any(u8::is_ascii_lowercase)
    }

    /// Whether it is an option of a command: `--token`, `-Password`.
    pub(super) fn is_flag(&self) -> bool {
        self.view.at(self.range.start) == b'-'
    }

    /// Whether it is `name`, in lower case and without what joins words.
    pub(super) fn is(&self, name: &str) -> bool {
        self.flat().iter().any(|flat| flat == name.as_bytes())
    }

    /// Whether `word` is a part of it, in lower case and without what joins words.
    pub(super) fn has(&self, word: &str) -> bool {
        let has = |flat: &Vec<u8>| memchr::memmem::find(flat, word.as_bytes()).is_some();
        self.flat().iter().any(has)
    }

    /// Whether it says something about a secret (its name, file, age) rather than being one.
    pub(super) fn is_about(&self) -> bool {
        let rest = flattened(self.view.slice(self.anchor.end..self.range.end));
        let singular = rest.strip_prefix(b"s").filter(|rest| !rest.is_empty()).unwrap_or(&rest);
        let mut words = ABOUT.split_ascii_whitespace().map(str::as_bytes);
        let mut prefixes = ABOUT_PREFIXES.split_ascii_whitespace().map(str::as_bytes);
        let is_last = |word: &[u8]| {
            (word.len() >= 4 || ABOUT_ENDINGS.contains(&word)) && rest.ends_with(word)
        };
        let is_token =
            ["token", "key"].iter().any(|word| self.view.reads(self.anchor.start, word.as_bytes()));
        let mut ids = ABOUT_TOKENS.split_ascii_whitespace().map(str::as_bytes);
        self.is_source()
            || words.any(|word| word == singular || word == rest || is_last(word))
            || is_token && ids.any(|word| word == rest)
            || prefixes.any(|prefix| singular.starts_with(prefix))
    }

    /// Whether it is a file of a program's source: `token_source.go:152`.
    fn is_source(&self) -> bool {
        let name = self.view.slice(self.range.clone());
        let dot = memchr::memrchr(b'.', name).unwrap_or(0);
        dot > 0 && SOURCES.contains(&&name[dot..])
    }

    /// Whether it names several: `tokens`.
    pub(super) fn is_plural(&self) -> bool {
        self.view.at(self.anchor.end).eq_ignore_ascii_case(&b's')
            && self.anchor.end + 1 == self.range.end
    }

    /// Whether it names the key of a certificate, which is kept in a file: `client-key: /etc/client.key`.
    pub(super) fn is_key_file(&self) -> bool {
        KEY_FILES.split_ascii_whitespace().any(|key| self.has(key))
    }

    /// Whether a `key` of this name is a secret one.
    pub(super) fn is_secret_key(&self) -> bool {
        !self.has("public") && KEYS.split_ascii_whitespace().any(|key| self.has(key))
    }

    /// Whether it ends with `key`, and does not say that the key is public. Its value is secret if it
    /// looks like a key.
    pub(super) fn is_some_key(&self) -> bool {
        let ends = |flat: &Vec<u8>| {
            let name = flat.trim_ascii_end().strip_suffix(b"s").unwrap_or(flat);
            name.ends_with(b"key") && name.len() > b"key".len()
        };
        ends(&self.flat()[1]) && !PUBLIC_KEYS.split_ascii_whitespace().any(|key| self.has(key))
    }

    /// Whether it is a parameter of an address: `?key=`.
    pub(super) fn is_parameter(&self) -> bool {
        matches!(self.view.before(self.range.start), b'?' | b'&')
    }

    /// Whether a `content` of this name is a secret one.
    pub(super) fn is_secret_content(&self) -> bool {
        CONTENTS.split_ascii_whitespace().any(|name| self.flat()[1].ends_with(name.as_bytes()))
    }

    /// Whether an `auth` of this name is a registry's credential.
    pub(super) fn is_authentication(&self) -> bool {
        AUTHENTICATIONS.split_ascii_whitespace().any(|name| self.is(name))
    }
}

/// Where a name ends that goes on at `start`. A line break ends it, unless it was wrapped there.
fn end_of_letters(view: &View, start: usize) -> usize {
    let after = view.bytes()[start..].iter().take(LONGEST);
    let limit = start + after.take_while(|byte| is_name_letter(**byte)).count();
    let mut end = view.next_break(start);
    while end < limit {
        let is_joined = view.before(end) == b'_' || view.at(end) == b'_';
        if !is_joined && !wrap::has_equal_width(view, end) {
            return end;
        }
        end = view.next_break(end + 1);
    }
    limit
}

/// Some anchors are only the beginning of their word.
fn end_of_word(view: &View, anchor: &Range<usize>) -> usize {
    let is_part = view.reads(anchor.start, b"connection") && view.reads(anchor.end, b"ing");
    anchor.end + if is_part { b"ing".len() } else { 0 }
}

/// In lower case, without what joins the words of a name.
fn flattened(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| !b"-_.".contains(byte));
    letters.map(u8::to_ascii_lowercase).collect()
}

/// Whether `word` is not a part of a longer one.
pub(super) fn stands_alone(view: &View, word: &Range<usize>) -> bool {
    let first = view.at(word.start);
    let before = view.before(word.start);
    let begins = !before.is_ascii_alphanumeric()
        || (first.is_ascii_uppercase() && !before.is_ascii_uppercase())
        || view.is_break(word.start);
    let last = view.before(word.end);
    let after = view.at(word.end);
    let ends =
        !after.is_ascii_alphabetic() || (last.is_ascii_lowercase() && after.is_ascii_uppercase());
    begins && ends
}

#[cfg(test)]
mod tests {
    use super::{Name, View, stands_alone};

    /// The view of `text`, and where `anchor` is in it.
    fn view(text: &str, anchor: &str) -> (View, std::ops::Range<usize>) {
        let view = View::of(text.as_bytes());
        let start = (0..view.len()).find(|&at| view.reads(at, anchor.as_bytes()));
        let start = start.expect("the anchor is in the text");
        (view, start..start + anchor.len())
    }

    #[test]
    fn a_name_reaches_as_far_as_its_letters() {
        for (text, expected) in
            [("+ a.MY-TOKEN_X=1", 2..14), ("abc\nTOKEN", 3..8), ("my-token\nkey: x", 0..8)]
        {
            let (view, anchor) = view(text, "token");
            assert_eq!(Name::around(&view, anchor, 0).range, expected);
        }
    }

    #[test]
    fn names_about_a_secret_are_told_from_its_own() {
        let is_about = |text: &str| {
            let (view, anchor) = view(text, "token");
            Name::around(&view, anchor, 0).is_about()
        };
        for name in [
            "TOKEN_TTL",
            "tokensCount",
            "tokenExpirationSeconds",
            "--token-file",
            "tokenSecretName",
        ] {
            assert!(is_about(name), "{name}");
        }
        assert!(!is_about("tokens") && !is_about("token_value"));
    }

    #[test]
    fn keys_are_secret_by_the_word_beside_them() {
        let is_secret = |text: &str| {
            let (view, anchor) = view(text, "key");
            Name::around(&view, anchor, 0).is_secret_key()
        };
        for name in ["AccountKey", "PRIVATE_KEY", "client-key-data", "the private key"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["key", "APISERVER_PUBLIC_KEY", "apt key", "keyring"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn short_words_count_only_as_words() {
        let is_whole = |text: &str| {
            let (view, anchor) = view(text, "sas");
            stands_alone(&view, &anchor)
        };
        for name in ["SAS_URL", "containerSas", "sas", "my-sas"] {
            assert!(is_whole(name), "{name}");
        }
        for name in ["disaster", "sass", "Kansas"] {
            assert!(!is_whole(name), "{name}");
        }
    }
}
