//! Any summary of bringup-node: reading it never panics, also if it is cut anywhere.

#![no_main]

use bringup_contract::cse;
use libfuzzer_sys::fuzz_target;

const TAG: &str = "BRINGUP-NODE/1 ";

/// Longer summaries are read in part.
const LONGEST: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = cse::read(&format!("{TAG}{text}"));
    let whole = serde_json::json!({
        "v": 1, "exit": 50, "name": text, "cause": text, "conf": text, "ev": [text], "pf": [text], "end": 1
    })
    .to_string();
    // Of many tags in a text only the last ones are tried.
    if whole.len() >= LONGEST || text.contains(TAG) {
        return;
    }
    let node = cse::read(&format!("x\n{TAG}{whole}\n")).node.expect("a whole summary is read");
    assert!(node.whole);
    assert_eq!(node.exit, Some(50));
    let cut = whole.floor_char_boundary(bytes.len() % (whole.len() + 1));
    let _ = cse::read(&format!("{TAG}{}", &whole[..cut]));
});
