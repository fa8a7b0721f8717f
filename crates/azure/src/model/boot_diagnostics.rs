//! The serial console: whether it is recorded, where, and what it says.

use std::fmt;

use azure_core::http::Url;
use bytes::Bytes;
use serde_json::Value;

use super::read::text;

/// Whether the serial console is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootDiagnostics {
    /// The answer does not say: it is an instance view alone.
    Unknown,
    /// It is not.
    Disabled,
    /// In storage of the platform's: the addresses have to be asked for.
    Managed,
    /// In a storage account of the user's.
    UserManaged {
        /// The storage account.
        storage: String,
        /// The serial log, once there is one. The address carries no signature.
        serial_log: Option<String>,
        /// The screenshot, once there is one.
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
            // An instance view alone has no profile; where it has addresses, there is storage.
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

/// The address of a blob with the signature that opens it. The signature is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SasAddress(Url);

impl SasAddress {
    /// An address of a blob, over https.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let fits = url.scheme() == "https" && url.username().is_empty() && url.has_host();
        fits.then_some(Self(url))
    }

    /// The whole address.
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

/// Where the serial log and the screenshot are, for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootDiagnosticsAddresses {
    /// The serial log.
    pub serial_log: Option<SasAddress>,
    /// The screenshot.
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

/// The end of the serial log, or why there is none. The bytes are as the guest wrote them:
/// any bytes at all, and NULs up to the end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SerialLog {
    /// Its last bytes.
    Tail {
        /// The bytes.
        bytes: Bytes,
        /// Whether there is more before them.
        cut: bool,
    },
    /// Nothing was written yet, or the machine is gone.
    Absent,
    /// The address has expired, or the storage does not let us in.
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
