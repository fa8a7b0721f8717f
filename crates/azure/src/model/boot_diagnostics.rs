//! The serial console: whether Azure records it, where, and its content.

use std::fmt;

use azure_core::http::Url;
use bytes::Bytes;
use serde_json::Value;

use super::read::text;

/// Whether Azure records the serial console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootDiagnostics {
    /// Not known: the response is an instance view alone.
    Unknown,
    /// Azure does not record the console.
    Disabled,
    /// Recorded in managed storage: the URLs must be requested.
    Managed,
    /// Recorded in a storage account of the user.
    UserManaged {
        /// The URL of the storage account.
        storage: String,
        /// The URL of the serial log without a signature, once the log exists.
        serial_log: Option<String>,
        /// The URL of the screenshot, once it exists.
        screenshot: Option<String>,
    },
}

impl BootDiagnostics {
    pub(super) fn of(properties: &Value, view: &Value) -> Self {
        let profile = properties.pointer("/diagnosticsProfile/bootDiagnostics");
        let serial_log = text(view, "/bootDiagnostics/serialConsoleLogBlobUri");
        let enabled = profile.and_then(|profile| profile.get("enabled")).and_then(Value::as_bool);
        let storage = profile.and_then(|profile| text(profile, "/storageUri"));
        match (enabled, storage) {
            (Some(false), _) => Self::Disabled,
            (_, Some(storage)) => Self::UserManaged {
                storage,
                serial_log: serial_log.map(without_query),
                screenshot: text(view, "/bootDiagnostics/consoleScreenshotBlobUri")
                    .map(without_query),
            },
            (Some(true), None) => Self::Managed,
            // An instance view alone has no profile. If it contains URLs, the console is recorded.
            (None, None) => match serial_log {
                Some(address) => Self::UserManaged {
                    storage: address
                        .split("/bootdiagnostics")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    serial_log: Some(without_query(address)),
                    screenshot: None,
                },
                None if properties.is_null() => Self::Unknown,
                None => Self::Disabled,
            },
        }
    }
}

fn without_query(address: String) -> String {
    match address.split_once('?') {
        Some((address, _)) => address.to_owned(),
        None => address,
    }
}

/// The URL of a blob with a signature that grants access. The signature is never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SasAddress(Url);

impl SasAddress {
    /// Parses the HTTPS URL of a blob.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let fits = url.scheme() == "https" && url.username().is_empty() && url.has_host();
        fits.then_some(Self(url))
    }

    /// The whole URL with its signature.
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for SasAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        write!(formatter, "{shown}")?;
        if self.0.query().is_some() { formatter.write_str("?[hidden]") } else { Ok(()) }
    }
}

impl fmt::Debug for SasAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SasAddress({self})")
    }
}

/// URLs of the serial log and the screenshot that are valid for a limited time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootDiagnosticsAddresses {
    /// The URL of the serial log, if Azure returned one.
    pub serial_log: Option<SasAddress>,
    /// The URL of the screenshot, if Azure returned one.
    pub screenshot: Option<SasAddress>,
}

impl BootDiagnosticsAddresses {
    pub(crate) fn of(body: &Value) -> Self {
        let address = |pointer| text(body, pointer).and_then(|text| SasAddress::parse(&text));
        Self {
            serial_log: address("/serialConsoleLogBlobUri"),
            screenshot: address("/consoleScreenshotBlobUri"),
        }
    }
}

/// The end of the serial log, or why it could not be read. The bytes are as the guest wrote them: arbitrary,
/// and NUL up to the end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SerialLog {
    /// The last bytes of the log.
    Tail {
        /// The last bytes.
        bytes: Bytes,
        /// Whether earlier bytes were dropped.
        cut: bool,
    },
    /// The log is empty, or the VM was deleted.
    Absent,
    /// The URL has expired, or the storage denies access.
    Refused {
        /// The blob host's code, such as `AuthenticationFailed`.
        code: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_is_never_shown() {
        let address = SasAddress::parse("https://h:443/c/vm.log?sv=1&sig=SECRET&se=2").unwrap();
        assert_eq!(address.to_string(), "https://h/c/vm.log?[hidden]");
        let addresses = BootDiagnosticsAddresses { serial_log: Some(address), screenshot: None };
        assert!(!format!("{addresses:?}").contains("SECRET"));
    }

    #[test]
    fn what_is_no_safe_address_is_none() {
        for text in ["", "x", "http://h/b?sig=1", "https://u:p@h/b", "file:///etc/passwd"] {
            assert_eq!(SasAddress::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_console_is_recorded_by_the_platform_or_the_user_or_not() {
        let profile = |profile: Value| json!({"diagnosticsProfile": {"bootDiagnostics": profile}});
        let nothing = json!({});
        for (properties, expected) in [
            (json!({}), BootDiagnostics::Disabled),
            (
                profile(json!({"enabled": false, "storageUri": "https://s"})),
                BootDiagnostics::Disabled,
            ),
            (profile(json!({"enabled": true})), BootDiagnostics::Managed),
            (profile(json!(null)), BootDiagnostics::Disabled),
            (
                profile(json!({"enabled": true, "storageUri": "https://s"})),
                BootDiagnostics::UserManaged {
                    storage: "https://s".to_owned(),
                    serial_log: None,
                    screenshot: None,
                },
            ),
        ] {
            assert_eq!(BootDiagnostics::of(&properties, &nothing), expected, "{properties}");
        }
    }
}
