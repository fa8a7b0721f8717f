//! Decrypts the protected settings: an envelope for a key that only this machine has.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Decrypts an envelope. The error never quotes the content.
pub(crate) fn open(text: &str, key: &str, settings: &Path) -> Result<String, String> {
    let envelope = STANDARD.decode(text.trim()).map_err(|_| "they are not base64".to_owned())?;
    let sound = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !sound {
        return Err("the name of the key is not a fingerprint".to_owned());
    }
    opened(&envelope, key, settings)
}

/// The guest agent stores the keys two folders above the settings. Old and new envelopes need different
/// openssl commands.
#[cfg(unix)]
fn opened(envelope: &[u8], key: &str, settings: &Path) -> Result<String, String> {
    use std::process::Command;
    use std::time::Duration;

    let keys = settings.parent().and_then(Path::parent).unwrap_or(settings);
    let ask = |form: &str| {
        let mut openssl = Command::new("openssl");
        openssl.args([form, "-decrypt", "-inform", "DER", "-inkey"]);
        openssl.arg(keys.join(format!("{key}.prv"))).arg("-recip");
        openssl.arg(keys.join(format!("{key}.crt")));
        crate::host::linux::subprocess::ask_with(&mut openssl, envelope, Duration::from_secs(5))
    };
    ask("cms").or_else(|why| ask("smime").map_err(|_| why))
}

#[cfg(windows)]
fn opened(envelope: &[u8], _key: &str, _settings: &Path) -> Result<String, String> {
    let opened = crate::host::windows::api::decrypt(envelope);
    let opened = opened.map_err(|error| format!("Windows does not open them: {error}"))?;
    Ok(String::from_utf8_lossy(&opened).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_fingerprint_and_no_path() {
        let open = |text, key| open(text, key, Path::new("/nowhere/a/config"));
        assert_eq!(open("?", "AB").unwrap_err(), "they are not base64");
        for key in ["", "../AB", "A B"] {
            assert!(open("AA==", key).unwrap_err().contains("not a fingerprint"), "{key}");
        }
        assert!(open("AA==", "AB").is_err());
    }
}
