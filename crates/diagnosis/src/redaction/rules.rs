//! The rules, one a file: what it removes, why, what it leaves alone.
//!
//! The name in the marker is the rule's name, except for [`named_value`], whose markers say what
//! kind of name it was.

pub(super) mod agent_token;
pub(super) mod authorization;
pub(super) mod bearer;
pub(super) mod bootstrap_token;
pub(super) mod client_secret;
pub(super) mod complex_password;
pub(super) mod cookie;
pub(super) mod encoded_secret;
pub(super) mod hex_dump;
pub(super) mod json_web_token;
pub(super) mod key_text;
pub(super) mod kubernetes_secret;
pub(super) mod microsoft_header;
pub(super) mod named_value;
pub(super) mod password_hash;
pub(super) mod private_key;
pub(super) mod sas_signature;
pub(super) mod spaced_letters;
pub(super) mod tool_password;
pub(super) mod url_userinfo;
pub(super) mod vendor_token;
pub(super) mod webhook;

/// Every name a marker can have.
pub(super) const RULES: &[&str] = &[
    "agent-token",
    "authorization",
    "basic-credential",
    "bearer-token",
    "bootstrap-token",
    "client-secret",
    "complex-password",
    "connection-string",
    "cookie",
    "credential",
    "encoded-secret",
    "hex-dump",
    "json-web-token",
    "key",
    "key-material",
    "kubernetes-secret",
    "microsoft-header",
    "password",
    "password-hash",
    "private-key",
    "protected-settings",
    "registry-auth",
    "sas-signature",
    "sas-token",
    "secret",
    "storage-key",
    "token",
    "tool-password",
    "url-userinfo",
    "user-data",
    "vendor-token",
    "webhook",
];

/// What a rule's tests ask: the text after redaction.
#[cfg(test)]
fn redacted(text: &str) -> String {
    super::redact(text).text.into_string()
}

/// Asserts that a rule leaves all of these alone.
#[cfg(test)]
fn assert_kept(texts: &[&str]) {
    for text in texts {
        assert_eq!(redacted(text), *text);
    }
}
