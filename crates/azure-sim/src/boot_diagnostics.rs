//! The serial console: signed URLs that expire, and the blob behind them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Body, Call, Reply};
use crate::resources::vm::Vm;
use crate::resources::{later, not_found, text};
use crate::route::Id;

/// The blob grows in pages of this size; the part that the guest has not written is NUL.
const PAGE: usize = 512;

impl Azure {
    pub(crate) fn post_boot_diagnostics(
        &self,
        call: &Call<'_>,
        id: &Id,
    ) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| not_found(id))?;
        if vm.properties.pointer("/diagnosticsProfile/bootDiagnostics/enabled")
            != Some(&Value::Bool(true))
        {
            let message = format!("Boot diagnostics is not enabled for the VM '{}'.", id.name());
            return Err(ArmError::new(
                self.scenario.quirks.boot_diagnostics_off,
                "OperationNotAllowed",
                message,
            ));
        }
        let minutes = match call.query("sasUriExpirationTimeInMinutes") {
            None => 120,
            Some(text) => text.parse::<i64>().ok().filter(|minutes| (1..=1440).contains(minutes)).ok_or_else(|| {
                let message = format!("The value '{text}' of parameter 'sasUriExpirationTimeInMinutes' is out of range. The value must be between 1 and 1440.");
                ArmError::new(400, "InvalidParameter", message).target("sasUriExpirationTimeInMinutes")
            })?,
        };
        let expires = self.now + SignedDuration::from_mins(minutes);
        let signature = self.seed.of(&format!("sas/{}/{expires}", vm.vm_id)).letters(43);
        let address = |kind: &str| {
            let expires = expires.strftime("%Y-%m-%dT%H%%3a%M%%3a%SZ");
            format!(
                "{}/bootdiagnostics/{}/{kind}?sv=2018-03-28&sr=b&sig={signature}%3D&se={expires}&sp=r",
                call.base, vm.vm_id
            )
        };
        Ok(Reply::json(
            200,
            json!({
                "consoleScreenshotBlobUri": address("screenshot.bmp"),
                "serialConsoleLogBlobUri": address("serialconsole.log"),
            }),
        ))
    }

    /// Reads the blob. The blob host checks the signature in the URL instead of a bearer token.
    pub(crate) fn get_blob(&self, call: &Call<'_>, path: &str) -> Reply {
        let refused = |status, code: &'static str, message: &str| {
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
            );
            Reply {
                status,
                headers: vec![("x-ms-error-code", code.to_owned())],
                body: Body::Bytes("application/xml", body.into_bytes()),
            }
        };
        let expires = call.query("se").and_then(|text| text.parse::<Timestamp>().ok());
        if call.query("sig").is_none() || expires.is_none_or(|expires| expires <= self.now) {
            return refused(
                403,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Signature not valid in the specified time frame.",
            );
        }
        let (vm_id, kind) = path.split_once('/').unwrap_or((path, ""));
        let Some(vm) = self.vms.values().find(|vm| vm.vm_id == vm_id) else {
            return refused(404, "BlobNotFound", "The specified blob does not exist.");
        };
        let bytes = if kind == "serialconsole.log" { self.console_bytes(vm) } else { Vec::new() };
        if bytes.is_empty() {
            return refused(404, "BlobNotFound", "The specified blob does not exist.");
        }
        let version = version(&bytes);
        if call.unless == Some(&version) {
            return Reply::empty(304).with("etag", version);
        }
        let reply = ranged(call.range, bytes).unwrap_or_else(|| {
            refused(
                416,
                "InvalidRange",
                "The range specified is invalid for the current size of the resource.",
            )
        });
        reply.with("etag", version)
    }

    /// The part of the console that the platform has stored so far.
    fn console_bytes(&self, vm: &Vm) -> Vec<u8> {
        let lag = self.scenario.quirks.console_lag.0;
        let mut bytes: Vec<u8> = vm
            .console
            .iter()
            .filter(|(at, _)| later(*at, lag) <= self.now)
            .flat_map(|(_, text)| text.bytes())
            .collect();
        if !bytes.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        }
        bytes
    }
}

/// With a storage account managed by the user, the instance view contains the blob URLs.
pub(crate) fn user_managed_console(vm: &Vm, base: &str) -> Option<Value> {
    text(&vm.properties, "/diagnosticsProfile/bootDiagnostics/storageUri")?;
    let address = |kind: &str| format!("{base}/bootdiagnostics/{}/{kind}", vm.vm_id);
    Some(json!({
        "consoleScreenshotBlobUri": address("screenshot.bmp"),
        "serialConsoleLogBlobUri": address("serialconsole.log"),
    }))
}

/// The `ETag` of a blob with these bytes. The length is enough, because the guest only appends.
fn version(bytes: &[u8]) -> String {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    format!("\"0x{written:016X}\"")
}

/// The bytes that `Range` selects; `None` when the range is outside the blob.
fn ranged(range: Option<&str>, bytes: Vec<u8>) -> Option<Reply> {
    let kind = "application/octet-stream";
    let Some((start, end)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'))
    else {
        return Some(Reply { status: 200, headers: Vec::new(), body: Body::Bytes(kind, bytes) });
    };
    let size = bytes.len();
    let (start, end) = match (start.parse::<usize>().ok(), end.parse::<usize>().ok()) {
        (Some(start), end) => (start, end.unwrap_or(usize::MAX).min(size.saturating_sub(1))),
        (None, Some(last)) => (size.saturating_sub(last), size.saturating_sub(1)),
        (None, None) => return None,
    };
    let part = bytes.get(start..=end).filter(|part| !part.is_empty())?.to_vec();
    let reply = Reply { status: 206, headers: Vec::new(), body: Body::Bytes(kind, part) };
    Some(reply.with("content-range", format!("bytes {start}-{end}/{size}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(range: Option<&str>) -> Option<(u16, Vec<u8>)> {
        let reply = ranged(range, b"0123456789".to_vec())?;
        let Body::Bytes(_, bytes) = reply.body else { panic!("bytes were asked for") };
        Some((reply.status, bytes))
    }

    #[test]
    fn the_requested_range_is_returned() {
        assert_eq!(part(None), Some((200, b"0123456789".to_vec())));
        assert_eq!(part(Some("bytes=2-4")), Some((206, b"234".to_vec())));
        assert_eq!(part(Some("bytes=8-")), Some((206, b"89".to_vec())));
        assert_eq!(part(Some("bytes=-3")), Some((206, b"789".to_vec())));
        assert_eq!(part(Some("bytes=8-99")), Some((206, b"89".to_vec())));
        assert_eq!(part(Some("bytes=10-")), None);
    }
}
