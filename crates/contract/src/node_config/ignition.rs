//! CustomData for Flatcar and Azure Container Linux.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::custom_data::{File, gzip};

const UNIT: &str = "aks-node-controller.service";
/// 0600, in the decimal notation of Ignition.
const MODE: u32 = 384;

/// The files, and the unit that reads them. The unit is disabled in the image, and a preset enables it too
/// late for the first boot; the link guarantees that it starts.
pub(super) fn ignition(files: &[File<'_>]) -> String {
    let files: Vec<Value> = files
        .iter()
        .map(|file| {
            let packed = gzip(file.content);
            let contents = if packed.len() < file.content.len() {
                json!({ "compression": "gzip", "source": source(&packed) })
            } else {
                json!({ "source": source(file.content) })
            };
            json!({ "path": file.path, "mode": MODE, "overwrite": true, "contents": contents })
        })
        .collect();
    let whole = json!({
        "ignition": { "version": "3.4.0" },
        "storage": {
            "files": files,
            "links": [{
                "path": format!("/etc/systemd/system/basic.target.wants/{UNIT}"),
                "target": format!("/etc/systemd/system/{UNIT}"),
                "overwrite": true,
            }],
        },
        "systemd": { "units": [{ "name": UNIT, "enabled": true }] },
    });
    whole.to_string()
}

fn source(content: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(content))
}
