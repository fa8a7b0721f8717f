//! Text made to be slow: what a rule looks for, over and over, so that every search goes far.

use std::time::{Duration, Instant};

use bringup_diagnosis::redaction::redact;

const PATTERNS: &[&str] = &[
    "token:",
    "token=",
    "token=/",
    "token='a\n",
    "token=a\\\n",
    "token: |\n",
    "token \"",
    "<token>",
    "\"token\":[",
    "\"token\":[\"a\",",
    "name: token, value",
    "password: \"",
    "password is ",
    "key",
    "auth=",
    "sas",
    "sig=",
    "://",
    "://a:",
    "a://b:c@",
    "http://a:b",
    "proxy=",
    "curl",
    "curl -u ",
    "docker login",
    "sshpass -p",
    "echo chpasswd ",
    "echo sudo -S ",
    "ConvertTo-SecureString -",
    "bearer ",
    "Basic QUJD",
    "Authorization: ",
    "cookie: a=",
    "x-ms-",
    "$6$",
    "eyJ",
    "eyJ.",
    "Q~",
    "a8Q~bbbbbbb\n",
    "ghp_",
    "abcdef.",
    "abcdef.0123456789abcdef ",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----\n",
    "-----BEGIN CERTIFICATE-----\naB3d",
    "LS0tLS1CRUdJTi",
    "QUJD.",
    "aB3",
    "aB3d\n",
    "a=b;",
    "+",
    "\\",
    "\\n",
    "\\\"",
    "%25",
    "%",
    "[redacted ",
    "[redacted token]",
    "\u{1b}[",
    "\0",
    "_x000A_",
    "é",
    "’",
    "${",
    "$(",
    "{{",
    "<",
];

const LENGTH: usize = 64 * 1024;

/// Far more than linear work takes without optimisation, far less than quadratic work takes with it.
const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn repeating_what_a_rule_looks_for_does_not_make_it_slow() {
    for pattern in PATTERNS {
        let text = pattern.repeat(LENGTH / pattern.len());
        let start = Instant::now();
        let output = redact(&text).text;
        assert!(start.elapsed() < LIMIT, "{pattern:?} took {:?}", start.elapsed());
        assert_eq!(output.matches('\n').count(), text.matches('\n').count(), "{pattern:?}");
    }
}

#[test]
fn alternating_what_rules_look_for_does_not_make_them_slow() {
    for (first, second) in PATTERNS.iter().zip(PATTERNS.iter().cycle().skip(7)) {
        let text = format!("{first}{second}").repeat(LENGTH / 8 / (first.len() + second.len()));
        let start = Instant::now();
        redact(&text);
        assert!(start.elapsed() < LIMIT, "{first:?} {second:?} took {:?}", start.elapsed());
    }
}
