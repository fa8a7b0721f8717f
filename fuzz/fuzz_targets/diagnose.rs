//! Any bytes: a diagnosis never panics, never hangs, and is JSON.

#![no_main]

use bringup_diagnosis::{Evidence, Piece, Source, diagnose};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for source in [Source::Text, Source::SerialLog] {
        let pieces = vec![Piece::seen(source, "text", &text)];
        let diagnosis = diagnose(&Evidence { pieces, ..Evidence::default() });
        let json = serde_json::to_string(&diagnosis).expect("a diagnosis is JSON");
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    }
});
