//! Any bytes: a diagnosis never panics, never hangs, and is JSON.

#![no_main]

use bringup_diagnosis::{Evidence, diagnose};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let diagnosis = diagnose(&Evidence::of_text(&text));
    let json = serde_json::to_string(&diagnosis).expect("a diagnosis is JSON");
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
});
