//! Any answer of the Resource Manager: the codes that it states are parts of it, in order.

#![no_main]

use bringup_contract::arm;
use libfuzzer_sys::fuzz_target;

fn check(text: &str) {
    let stated = arm::stated(text);
    for found in &stated {
        assert!(text[found.at..].starts_with(found.code));
    }
    assert!(stated.is_sorted_by_key(|found| found.at));
    assert_eq!(arm::most_specific(&stated).is_none(), stated.is_empty());
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    check(&text);
    let error = serde_json::json!({ "error": {
        "code": "VMExtensionProvisioningError",
        "message": text,
        "details": [{ "code": text, "message": "Conflict" }],
    }});
    check(&error.to_string());
});
