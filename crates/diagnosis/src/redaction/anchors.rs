//! The words at which rules look.
//!
//! One search for all of them; it is what makes redaction cheap. An anchor only says where to
//! look, the rule says what is there.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::rules::{
    agent_token, authorization, bearer, cookie, json_web_token, key_text, microsoft_header,
    named_value, password_hash, private_key, sas_signature, spaced_letters, tool_password,
    url_userinfo, vendor_token, webhook,
};
use super::scan::Scan;
use super::view::View;
use super::words;

/// Looks at one place, and reports to the scan what it finds.
pub(super) type Examine = fn(&mut Scan<'_>, Range<usize>);

/// A word that calls a rule.
#[derive(Clone)]
struct Anchor {
    /// In lower case; the search is in folded text.
    word: &'static str,
    /// How many letters are left out of the search at its beginning. What begins with three rare
    /// letters is found faster: `oxy` begins nothing in a log, `pro` begins `process`.
    skipped: usize,
    examine: Examine,
}

const fn anchor(word: &'static str, skipped: usize, examine: Examine) -> Anchor {
    Anchor { word, skipped, examine }
}

impl Anchor {
    /// The part of the word that is searched.
    fn probe(&self) -> &'static str {
        &self.word[self.skipped..]
    }
}

const ANCHORS: &[Anchor] = &[
    anchor("token", 0, named_value::examine),
    anchor("secret", 2, named_value::examine),
    anchor("pass", 0, named_value::examine),
    anchor("pwd", 0, named_value::examine),
    anchor("pw=", 0, named_value::examine),
    anchor("pw:", 0, named_value::examine),
    anchor("pw\"", 0, named_value::examine),
    anchor("pw ", 0, named_value::examine),
    anchor("otp", 0, named_value::examine),
    anchor("totp", 0, named_value::examine),
    anchor("psw=", 0, named_value::examine),
    anchor("psw:", 0, named_value::examine),
    anchor("cred=", 0, named_value::examine),
    anchor("cred:", 0, named_value::examine),
    anchor("cred\"", 0, named_value::examine),
    anchor("\"k\":", 0, named_value::examine),
    anchor("sid=", 0, named_value::examine),
    anchor("salt", 0, named_value::examine),
    anchor("csrf", 0, named_value::examine),
    anchor("xsrf", 0, named_value::examine),
    anchor("nonce", 0, named_value::examine),
    anchor("license", 3, named_value::examine),
    anchor("ntlm", 0, named_value::examine),
    anchor("krbtgt", 0, named_value::examine),
    anchor("unseal", 0, named_value::examine),
    anchor("art-api", 0, named_value::examine),
    anchor("securestring", 3, named_value::examine_typed),
    anchor("secureobject", 3, named_value::examine_typed),
    anchor("psk", 0, named_value::examine),
    anchor("puk=", 0, named_value::examine),
    anchor("puk:", 0, named_value::examine),
    anchor("puk\"", 0, named_value::examine),
    anchor("pat=", 0, named_value::examine),
    anchor("pat:", 0, named_value::examine),
    anchor("pat\"", 0, named_value::examine),
    anchor("phrase", 0, named_value::examine),
    anchor("tkn", 0, named_value::examine),
    anchor("pepper", 0, named_value::examine),
    anchor("mdp=", 0, named_value::examine),
    anchor("mdp:", 0, named_value::examine),
    anchor("mdp_", 0, named_value::examine),
    anchor("mdp\"", 0, named_value::examine),
    anchor("pin=", 0, named_value::examine),
    anchor("pin:", 0, named_value::examine),
    anchor("pin\"", 0, named_value::examine),
    anchor("clave", 0, named_value::examine),
    anchor("creds", 0, named_value::examine),
    anchor("credential", 6, named_value::examine),
    anchor("community", 3, named_value::examine),
    anchor("mnemonic", 0, named_value::examine),
    anchor("connectionstr", 5, named_value::examine),
    anchor("connection_str", 9, named_value::examine),
    anchor("connection-str", 9, named_value::examine),
    anchor("sas", 0, named_value::examine),
    anchor("key", 0, named_value::examine),
    anchor("client_content", 5, named_value::examine),
    anchor("clientcontent", 4, named_value::examine),
    anchor("file_content", 3, named_value::examine),
    anchor("filecontent", 2, named_value::examine),
    anchor("customdata", 5, named_value::examine),
    anchor("custom_data", 5, named_value::examine),
    anchor("userdata", 3, named_value::examine),
    anchor("user_data", 3, named_value::examine),
    anchor("protectedsettings", 3, named_value::examine),
    anchor("protected_settings", 3, named_value::examine),
    anchor("seed", 0, named_value::examine),
    anchor("entropy", 2, named_value::examine),
    anchor("sessionid", 2, named_value::examine),
    anchor("session_id", 4, named_value::examine),
    anchor("session-id", 4, named_value::examine),
    anchor("sessid", 0, named_value::examine),
    anchor("samlre", 0, named_value::examine),
    anchor("assertion", 3, named_value::examine),
    anchor("identity_header", 4, named_value::examine),
    anchor("identity-header", 4, named_value::examine),
    anchor("ticket", 1, named_value::examine),
    anchor("hmac", 0, key_text::examine_hmac),
    anchor("aes256-", 0, key_text::examine_cipher),
    anchor("aes128-", 0, key_text::examine_cipher),
    anchor("aes-", 0, key_text::examine_cipher),
    anchor("(aes)", 0, key_text::examine_cipher),
    anchor("arcfour", 0, key_text::examine_cipher),
    anchor("rc4-", 0, key_text::examine_cipher),
    anchor("des3-", 0, key_text::examine_cipher),
    anchor("camellia", 0, key_text::examine_cipher),
    anchor("serpent-", 0, key_text::examine_cipher),
    anchor("twofish-", 0, key_text::examine_cipher),
    anchor("chacha20", 0, key_text::examine_cipher),
    anchor("rijndael", 0, key_text::examine_cipher),
    anchor("blowfish", 0, key_text::examine_cipher),
    anchor("_traffic_secret", 0, key_text::examine_cipher),
    anchor("exporter_secret", 0, key_text::examine_cipher),
    anchor("macsec", 0, key_text::examine_cipher),
    anchor("client_random", 4, key_text::examine_cipher),
    anchor("privateexponent", 4, key_text::examine_number),
    anchor("prime1", 0, key_text::examine_number),
    anchor("prime2", 0, key_text::examine_number),
    anchor("exponent1", 3, key_text::examine_number),
    anchor("exponent2", 3, key_text::examine_number),
    anchor("coefficient", 2, key_text::examine_number),
    anchor("priv:", 0, key_text::examine_number),
    anchor("mk dump", 0, key_text::examine_number),
    anchor("private-lines", 6, key_text::examine_putty),
    anchor("private-mac", 6, key_text::examine_putty_code),
    anchor("d08c9ddf0115d111", 0, key_text::examine_protected),
    anchor("$ansible_vault;", 0, key_text::examine_vault),
    anchor("aes256_gcm,data:", 0, key_text::examine_sealed),
    anchor("{cipher}", 0, key_text::examine_cipher),
    anchor("p a s s", 0, spaced_letters::examine),
    anchor("p   a   s   s", 0, spaced_letters::examine),
    anchor("t o k e n", 0, spaced_letters::examine),
    anchor("t   o   k   e   n", 0, spaced_letters::examine),
    anchor("s e c r e t", 0, spaced_letters::examine),
    anchor("s   e   c   r   e   t", 0, spaced_letters::examine),
    anchor("jwt", 0, named_value::examine),
    anchor("code=", 0, named_value::examine),
    anchor("code:", 0, named_value::examine),
    anchor("code\"", 0, named_value::examine),
    anchor("auth", 1, authorization::examine),
    anchor("bearer", 3, bearer::examine_bearer),
    anchor("basic", 2, bearer::examine_basic),
    anchor("cookie", 2, cookie::examine),
    anchor("true\t/", 0, cookie::examine_jar),
    anchor("false\t/", 0, cookie::examine_jar),
    anchor("true /", 0, cookie::examine_jar),
    anchor("false /", 0, cookie::examine_jar),
    anchor("true  ", 0, cookie::examine_jar),
    anchor("false  ", 0, cookie::examine_jar),
    anchor("x-ms-", 0, microsoft_header::examine),
    anchor("sig", 0, sas_signature::examine),
    anchor("::server:", 0, agent_token::examine),
    anchor("::node:", 0, agent_token::examine),
    anchor("://", 0, url_userinfo::examine),
    anchor("proxy", 2, url_userinfo::examine_proxy),
    anchor(":thin:", 0, url_userinfo::examine_oracle),
    anchor("@tcp(", 0, url_userinfo::examine_go),
    anchor("webhook", 0, webhook::examine),
    anchor("hooks.", 0, webhook::examine),
    anchor("/hook", 0, webhook::examine),
    anchor("/integration", 0, webhook::examine),
    anchor("/inputs/", 0, webhook::examine_path),
    anchor("/receiver/", 0, webhook::examine_path),
    anchor("/with/key/", 0, webhook::examine_path),
    anchor("/trigger/", 0, webhook::examine_path),
    anchor("hc-ping.", 0, webhook::examine),
    anchor("nosnch.", 0, webhook::examine),
    anchor("healthchecks.", 0, webhook::examine),
    anchor("uptime.", 0, webhook::examine),
    anchor("/bot", 0, webhook::examine_bot),
    anchor("begin", 0, private_key::examine_begin),
    anchor("-end", 0, private_key::examine_end),
    anchor("eyj", 0, json_web_token::examine),
    anchor("akia", 0, vendor_token::examine_access_key),
    anchor("asia", 0, vendor_token::examine_access_key),
    anchor("sha256~", 0, vendor_token::examine_access_key),
    anchor(":::", 0, password_hash::examine_dump),
    anchor("$1$", 0, password_hash::examine),
    anchor("$2a$", 0, password_hash::examine),
    anchor("$2b$", 0, password_hash::examine),
    anchor("$2x$", 0, password_hash::examine),
    anchor("$2y$", 0, password_hash::examine),
    anchor("$5$", 0, password_hash::examine),
    anchor("$6$", 0, password_hash::examine),
    anchor("$7$", 0, password_hash::examine),
    anchor("$y$", 0, password_hash::examine),
    anchor("$gy$", 0, password_hash::examine),
    anchor("$apr1$", 0, password_hash::examine),
    anchor("$argon2", 0, password_hash::examine),
    anchor("$scrypt$", 0, password_hash::examine),
    anchor("pbkdf2", 0, password_hash::examine),
    anchor("{ssha", 0, password_hash::examine),
    anchor("{sha}", 0, password_hash::examine),
    anchor("{smd5}", 0, password_hash::examine),
    anchor("{md5}", 0, password_hash::examine),
    anchor("{crypt}", 0, password_hash::examine),
];

/// Anchors that are tables of their own: programs, and words of other languages.
fn more_anchors() -> impl Iterator<Item = Anchor> {
    let programs = tool_password::WORDS.iter().map(|(word, examine)| anchor(word, 0, *examine));
    let secrets = words::FOREIGN_SECRETS.iter().map(|(word, _)| word);
    let foreign = words::FOREIGN_PASSWORDS.iter().chain(secrets);
    programs.chain(foreign.map(|word| anchor(word, 0, named_value::examine)))
}

static ALL: LazyLock<Vec<Anchor>> = LazyLock::new(|| {
    let mut all: Vec<Anchor> = ANCHORS.to_vec();
    all.extend(more_anchors());
    all
});

static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(AhoCorasickKind::DFA))
        .build(ALL.iter().map(Anchor::probe))
        .expect("a few hundred short words fit any automaton")
});

/// How much of the text is folded and searched together; it stays in the fastest cache.
const WINDOW: usize = 16 * 1024;

/// No probe is longer, so none is missed between two windows.
const LONGEST_PROBE: usize = 32;

/// Every anchor of a view in order, with the rule that looks there.
pub(super) struct Anchors<'a> {
    view: &'a View,
    folded: Vec<u8>,
    window: usize,
    from: usize,
}

impl<'a> Anchors<'a> {
    pub(super) fn of(view: &'a View) -> Self {
        let mut anchors = Self { view, folded: Vec::new(), window: 0, from: 0 };
        anchors.fold_window();
        anchors
    }

    fn fold_window(&mut self) {
        let end = self.view.len().min(self.window + WINDOW + LONGEST_PROBE);
        self.folded.clear();
        self.folded.extend_from_slice(&self.view.bytes()[self.window..end]);
        self.folded.make_ascii_lowercase();
    }

    /// The next probe in this window or a later one: the number of its anchor, and where it is.
    fn next_probe(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Some(found) = SEARCH.find(Input::new(&self.folded).range(self.from..))
                && found.start() < WINDOW
            {
                // One letter further, so that a probe cannot hide another that begins within it.
                self.from = found.start() + 1;
                return Some((found.pattern().as_usize(), self.window + found.start()));
            }
            if self.window + WINDOW >= self.view.len() {
                return None;
            }
            self.window += WINDOW;
            self.from = 0;
            self.fold_window();
        }
    }
}

impl Iterator for Anchors<'_> {
    type Item = (Examine, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, probe) = self.next_probe()?;
            let anchor = &ALL[number];
            if let Some(start) = probe.checked_sub(anchor.skipped)
                && self.view.reads(start, anchor.word.as_bytes())
            {
                return Some((anchor.examine, start..start + anchor.word.len()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Anchors, LONGEST_PROBE, WINDOW};
    use crate::redaction::view::View;

    #[test]
    fn every_probe_is_long_enough_to_be_rare() {
        for anchor in ALL.iter() {
            assert!((3..=LONGEST_PROBE).contains(&anchor.probe().len()), "{}", anchor.word);
            assert_eq!(anchor.word, anchor.word.to_ascii_lowercase());
        }
    }

    #[test]
    fn no_probe_hides_another_that_begins_at_the_same_letter() {
        for (index, first) in ALL.iter().enumerate() {
            for second in &ALL[index + 1..] {
                let hides = first.probe().starts_with(second.probe())
                    || second.probe().starts_with(first.probe());
                assert!(!hides, "{} {}", first.word, second.word);
            }
        }
    }

    #[test]
    fn anchors_are_found_across_windows_and_inside_each_other() {
        for before in WINDOW - 8..WINDOW + 2 {
            let text = "-".repeat(before) + "ToKenkey";
            let view = View::of(text.as_bytes());
            let found: Vec<_> = Anchors::of(&view).map(|(_, range)| range).collect();
            assert_eq!(found, [before..before + 5, before + 5..before + 8]);
        }
    }
}
