//! Helpers that the tests of the extension share.

pub(crate) mod agent;
#[path = "../../examples/extension_package/package.rs"]
#[allow(dead_code, reason = "most tests know one system")]
pub(crate) mod package;
#[path = "../../examples/extension_package/zip.rs"]
#[allow(dead_code, reason = "most tests unpack without packing")]
pub(crate) mod zip;

pub(crate) use agent::*;

/// Settings with such long limits that a wait ends before them.
pub(crate) fn patient() -> serde_json::Value {
    serde_json::json!({ "timeout": "10m", "startTimeout": "10m", "settle": "0s" })
}
