//! Words that name a secret, in the languages in which machines are set up.

use std::ops::Range;

use super::name;
use super::view::View;

/// What kind of secret a word names; it decides which values are believed to be harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What a person or program proves itself with. Almost any value goes.
    Password,
    Token,
    Secret,
    Credential,
    SharedAccess,
    Key,
    RegistryAuth,
    ProtectedSettings,
    KeyContent,
    UserData,
    ConnectionString,
    /// What a program shows to be let in again, or nodes of a cluster to each other.
    Cookie,
    /// A word that also names other things. Only a value that looks like a key goes.
    Weak,
}

/// Words that begin with `pass`, longest first.
const PASSES: [&[u8]; 13] = [
    b"passphrase",
    b"password",
    b"passwort",
    b"passwrd",
    b"passw0rd",
    b"passowrd",
    b"passcode",
    b"passwd",
    b"passord",
    b"passkey",
    b"passout",
    b"passin",
    b"passe",
];

/// Words that end with `pass` and name no password.
const OTHER_PASSES: [&[u8]; 5] = [b"by", b"com", b"sur", b"tres", b"over"];

/// Words for a password in other languages than English, and common misspellings. Those that are parts
/// of other words are in [`WHOLE_PASSWORDS`]. Only ASCII letters are folded, so words with other capital
/// letters are listed twice.
pub(super) const FOREIGN_PASSWORDS: &[&str] = &[
    "pswd",
    "psswd",
    "pssword",
    "pasword",
    "paswd",
    "p4ss",
    "pa55",
    "p455",
    "p@ssw",
    "security_answer",
    "security-answer",
    "security answer",
    "securityanswer",
    "pword",
    "toegangscode",
    "zugangscode",
    "palavra-passe",
    "palavra_passe",
    "palavra-chave",
    "palavra_chave",
    "hasŁo",
    "lÖsenord",
    "jelszÓ",
    "Şİfre",
    "Şifre",
    "暗証番号",
    "暗号",
    "密碼",
    "암호",
    "kennwort",
    "contrase",
    "wachtwoord",
    "hasło",
    "haslo",
    "heslo",
    "geslo",
    "lozinka",
    "salasana",
    "lösenord",
    "losenord",
    "şifre",
    "sifre",
    "jelszó",
    "jelszo",
    "adgangskode",
    "kodeord",
    "slaptažod",
    "slaptazod",
    "parolă",
    "parola",
    "senha",
    "mật khẩu",
    "mật_khẩu",
    "matkhau",
    "mat_khau",
    "пароль",
    "Пароль",
    "ПАРОЛЬ",
    "парола",
    "лозинка",
    "κωδικός",
    "κωδικος",
    "סיסמה",
    "סיסמא",
    "كلمة المرور",
    "كلمة السر",
    "密码",
    "口令",
    "パスワード",
    "비밀번호",
    "รหัสผ่าน",
];

/// Words for other secrets in other languages than English.
pub(super) const FOREIGN_SECRETS: &[(&str, Kind)] = &[
    ("s3cret", Kind::Secret),
    ("s3cr3t", Kind::Secret),
    ("secr3t", Kind::Secret),
    ("t0ken", Kind::Token),
    ("t0k3n", Kind::Token),
    ("tok3n", Kind::Token),
    ("zugangsdaten", Kind::Credential),
    ("anmeldedaten", Kind::Credential),
    ("geheimnis", Kind::Secret),
    ("secrète", Kind::Secret),
    ("secrÈte", Kind::Secret),
    ("segredo", Kind::Secret),
    ("segreto", Kind::Secret),
    ("segreta", Kind::Secret),
    ("sekret", Kind::Secret),
    ("секрет", Kind::Secret),
    ("Секрет", Kind::Secret),
    ("СЕКРЕТ", Kind::Secret),
    ("秘密", Kind::Secret),
    ("シークレット", Kind::Secret),
    ("비밀키", Kind::Secret),
    ("密钥", Kind::Secret),
    ("密鑰", Kind::Secret),
    ("jeton", Kind::Token),
    ("токен", Kind::Token),
    ("Токен", Kind::Token),
    ("ТОКЕН", Kind::Token),
    ("令牌", Kind::Token),
    ("トークン", Kind::Token),
    ("토큰", Kind::Token),
    ("schlüssel", Kind::Weak),
    ("schlÜssel", Kind::Weak),
    ("ключ", Kind::Weak),
    ("Ключ", Kind::Weak),
    ("chiave", Kind::Weak),
];

/// Short words for a password; they count only as words of their own within a name.
const WHOLE_PASSWORDS: [&[u8]; 10] =
    [b"mdp", b"pwd", b"pw", b"otp", b"totp", b"psk", b"psw", b"pin", b"puk", b"clave"];

/// The kind of the word at `anchor`, and the whole word, of which the anchor may be a part.
pub(super) fn kind(view: &View, anchor: &Range<usize>) -> Option<(Kind, Range<usize>)> {
    let word = view.folded(anchor.clone());
    let whole = || name::stands_alone(view, anchor);
    let kind = match word.as_slice() {
        b"pass" => return pass(view, anchor.start).map(|word| (Kind::Password, word)),
        b"token" => Kind::Token,
        b"secret" | b"unseal" | b"art-api" => Kind::Secret,
        b"credential" => Kind::Credential,
        b"creds" | b"community" | b"pepper" => whole().then_some(Kind::Secret)?,
        b"mnemonic" => whole().then_some(Kind::Password)?,
        b"phrase" => return phrase(view, anchor).map(|word| (Kind::Password, word)),
        b"salt" => salt(view, anchor),
        b"cookie" => Kind::Cookie,
        b"tkn" => whole().then_some(Kind::Token)?,
        [b'p', b'a', b't', ..] => {
            let word = anchor.start..anchor.start + b"pat".len();
            return name::stands_alone(view, &word).then_some((Kind::Token, word));
        }
        b"sas" => whole().then_some(Kind::SharedAccess)?,
        b"key" => Kind::Key,
        [b'c', b'r', b'e', b'd', b'=' | b':' | b'"'] => {
            let word = anchor.start..anchor.end - 1;
            return name::stands_alone(view, &word).then_some((Kind::Secret, word));
        }
        b"\"k\":" => return Some((Kind::Weak, anchor.start + 1..anchor.start + 2)),
        b"sid=" => return Some((Kind::Weak, anchor.start..anchor.end - 1)),
        b"auth" => Kind::RegistryAuth,
        b"protectedsettings" | b"protected_settings" => Kind::ProtectedSettings,
        _ if word.ends_with(b"content") => Kind::KeyContent,
        _ if word.ends_with(b"data") => Kind::UserData,
        _ if word.starts_with(b"connection") => Kind::ConnectionString,
        // The anchor is the word with what stands after it, since it is so short.
        [b'p', b'w' | b'i' | b'u', b'=' | b':' | b'"' | b' ' | b'd' | b'n' | b'k', ..]
        | [b'p', b's', b'k' | b'w', ..]
        | [b'm', b'd', b'p', ..]
        | b"otp"
        | b"totp"
        | b"clave"
            if !FOREIGN_PASSWORDS.iter().any(|foreign| foreign.as_bytes() == word) =>
        {
            return short_password(view, anchor.start).map(|word| (Kind::Password, word));
        }
        [b'c', b'o', b'd', b'e', ..] => {
            if let Some(word) = spoken_code(view, anchor.start) {
                return Some((Kind::Password, word));
            }
            return Some((Kind::Weak, anchor.start..anchor.start + b"code".len()));
        }
        _ if FOREIGN_PASSWORDS.iter().any(|foreign| foreign.as_bytes() == word) => Kind::Password,
        _ => FOREIGN_SECRETS
            .iter()
            .find(|(foreign, _)| foreign.as_bytes() == word)
            .map_or(Kind::Weak, |(_, kind)| *kind),
    };
    Some((kind, anchor.clone()))
}

/// The word that begins with `pass`, if it is one for a password.
fn pass(view: &View, start: usize) -> Option<Range<usize>> {
    let is_word = |word: &&&[u8]| {
        let goes_on = view.at(start + word.len()).is_ascii_alphabetic();
        view.reads(start, word) && !(**word == b"passe" && goes_on)
    };
    if let Some(word) = PASSES.iter().find(is_word) {
        return Some(start..start + word.len());
    }
    let end = start + b"pass".len();
    let (last, after) = (view.before(end), view.at(end));
    let ends = !after.is_ascii_alphabetic()
        || last.is_ascii_lowercase() && after.is_ascii_uppercase()
        || view.is_break(end);
    let is_other = |before: &&[u8]| {
        start.checked_sub(before.len()).is_some_and(|start| view.reads(start, before))
    };
    (ends && !OTHER_PASSES.iter().any(is_other)).then_some(start..end)
}

/// What a `phrase` is when it opens a wallet or an account.
const PHRASES: [&[u8]; 6] = [b"seed", b"recovery", b"backup", b"mnemonic", b"wallet", b"key"];

/// What a `code` is when it is as good as a password.
const CODES: [&[u8]; 9] = [
    b"recovery",
    b"backup",
    b"verification",
    b"security",
    b"unlock",
    b"device",
    b"pairing",
    b"activation",
    b"one-time",
];

/// `code` after the word that says which: `recovery code`.
fn spoken_code(view: &View, start: usize) -> Option<Range<usize>> {
    let end = start.checked_sub(1).filter(|blank| view.at(*blank) == b' ')?;
    let mut words = CODES.iter().filter_map(|word| end.checked_sub(word.len()).zip(Some(word)));
    let (word, _) = words.find(|(at, word)| view.reads(*at, word))?;
    Some(word..start + b"code".len())
}

/// `phrase` after the word that says which: `seed phrase`, `recovery_phrase`.
fn phrase(view: &View, anchor: &Range<usize>) -> Option<Range<usize>> {
    let gap = usize::from(matches!(view.before(anchor.start), b' ' | b'_' | b'-'));
    let end = anchor.start - gap;
    let start = PHRASES
        .iter()
        .find_map(|word| end.checked_sub(word.len()).filter(|start| view.reads(*start, word)))?;
    Some(start..anchor.end)
}

/// A salt with a name of several words (`signing_salt`) is as secret as what is made with it. Alone the
/// word is also a program's name.
fn salt(view: &View, anchor: &Range<usize>) -> Kind {
    let before = view.before(anchor.start);
    let is_last = name::stands_alone(view, anchor) && !name::is_name_letter(view.at(anchor.end));
    let is_joined = matches!(before, b'_' | b'-' | b'.') || before.is_ascii_lowercase();
    if is_last && is_joined { Kind::Secret } else { Kind::Weak }
}

/// The short word for a password at `start`, if it is a word of its own or ends one: `bindpw`.
fn short_password(view: &View, start: usize) -> Option<Range<usize>> {
    let word = WHOLE_PASSWORDS.iter().find(|word| view.reads(start, word))?;
    let word = start..start + word.len();
    let is_ending = view.reads(start, b"pw") && !view.at(word.end).is_ascii_alphabetic();
    (is_ending || name::stands_alone(view, &word)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind};
    use crate::redaction::view::View;

    fn kind_of(text: &str, anchor: &str) -> Option<Kind> {
        let view = View::of(text.as_bytes());
        let start = (0..view.len()).find(|&at| view.reads(at, anchor.as_bytes()))?;
        kind(&view, &(start..start + anchor.len())).map(|(kind, _)| kind)
    }

    #[test]
    fn words_for_a_password_are_told_from_words_that_begin_alike() {
        for name in
            ["pass", "ROOTPASS", "userpass", "MYSQL_PASS", "dbPassEnc", "passphrase", "passin"]
        {
            assert_eq!(kind_of(name, "pass"), Some(Kind::Password), "{name}");
        }
        for name in ["passed", "passthrough", "PASSED", "bypass", "passive", "passes"] {
            assert_eq!(kind_of(name, "pass"), None, "{name}");
        }
    }

    #[test]
    fn short_words_count_only_as_words() {
        for (name, anchor) in
            [("admin_pwd", "pwd"), ("bindpw=", "pw="), ("otp", "otp"), ("pin=", "pin=")]
        {
            assert_eq!(kind_of(name, anchor), Some(Kind::Password), "{name}");
        }
        for (name, anchor) in [("cwpwdx", "pwd"), ("hotpot", "otp"), ("spin=", "pin=")] {
            assert_eq!(kind_of(name, anchor), None, "{name}");
        }
    }
}
