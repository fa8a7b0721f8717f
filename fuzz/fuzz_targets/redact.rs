//! Any text around a planted token: the token never survives, and redacting twice changes
//! nothing more.

#![no_main]

use bringup_diagnosis::redaction::redact;
use libfuzzer_sys::fuzz_target;

const TOKEN: &str = "uk3xq7.0a1b2c3d4e5f6g7h";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // A fuzzer guesses the token, and within a longer word it is none.
    if text.contains(TOKEN) {
        return;
    }
    let planted = format!("{text}\n--token {TOKEN} \n{text}");
    let once = redact(&planted).text;
    assert!(!once.contains(TOKEN));
    assert_eq!(redact(once.as_str()).text, once);
});
