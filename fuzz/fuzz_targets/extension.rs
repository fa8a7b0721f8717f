//! Any message of a VM extension: reading it never panics, and what is read of it is in it.

#![no_main]

use bringup_contract::cse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let first = cse::read(&text);
    assert_eq!(format!("{first:?}"), format!("{:?}", cse::read(&text)));
    // The forms in which the handler wraps the result of the scripts.
    let json = serde_json::json!({ "ExitCode": "50", "Output": text, "Error": "" }).to_string();
    for message in [
        format!(
            "Enable failed: command terminated with exit status=1\n[stdout]\n{json}\n\n[stderr]\n"
        ),
        format!("ExitCode: |50|, Output: |{text}|, Error: |{text}|"),
        serde_json::json!({ "message": json }).to_string(),
    ] {
        let _ = cse::read(&message);
    }
});
