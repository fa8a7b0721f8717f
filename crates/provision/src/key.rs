//! An SSH key for VMs without users: Azure requires a key if password login is disabled.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const KIND: &str = "ssh-ed25519";

/// The public half of a new key in OpenSSH's format; the private half is dropped at once.
pub(super) fn unusable_key() -> String {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .ok()
        .and_then(|document| Ed25519KeyPair::from_pkcs8(document.as_ref()).ok());
    // Without randomness nothing else works either. Azure refuses the empty key.
    pair.map(|pair| written(pair.public_key().as_ref())).unwrap_or_default()
}

fn written(public: &[u8]) -> String {
    let mut blob = Vec::new();
    for part in [KIND.as_bytes(), public] {
        blob.extend(u32::try_from(part.len()).unwrap_or_default().to_be_bytes());
        blob.extend(part);
    }
    format!("{KIND} {}", STANDARD.encode(blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_34_a_key_has_the_form_of_openssh_and_each_is_different() {
        let (one, two) = (unusable_key(), unusable_key());
        assert_ne!(one, two);
        let blob = STANDARD.decode(one.strip_prefix("ssh-ed25519 ").unwrap()).unwrap();
        assert_eq!(blob.len(), 4 + 11 + 4 + 32);
        assert_eq!(&blob[4..15], KIND.as_bytes());
    }
}
