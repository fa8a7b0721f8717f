//! Operations that run on in Azure: the address says all, so a restart loses nothing.

use std::fmt;
use std::time::Duration;

use azure_core::http::Url;
use serde_json::Value;

use crate::cloud::Endpoint;
use crate::error::ArmFailure;

/// Longer than any address that Azure gives (two to four kilobytes).
const LONGEST: usize = 16 * 1024;

/// Why an address is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no address.
    #[error("the address of the operation is not an address")]
    NotAnAddress,
    /// Longer than any address of Azure's.
    #[error("the address of the operation is longer than {LONGEST} bytes")]
    TooLong,
    /// Our token would be sent to another host.
    #[error("the operation is at {found}, not at {expected}, and a token would be sent there")]
    OtherHost {
        /// Where it leads.
        found: String,
        /// Where it may lead.
        expected: String,
    },
}

/// The URL of an operation. It contains a signature, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct OperationAddress(Url);

impl OperationAddress {
    /// Reads an address that was answered, or stored.
    pub fn parse(text: &str, endpoint: &Endpoint) -> Result<Self, AddressError> {
        if text.len() > LONGEST {
            return Err(AddressError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| AddressError::NotAnAddress)?;
        let address = Self(url);
        address.check(endpoint)?;
        Ok(address)
    }

    /// Whether a token may be sent there.
    pub(crate) fn check(&self, endpoint: &Endpoint) -> Result<(), AddressError> {
        if endpoint.admits(&self.0) {
            return Ok(());
        }
        let origin = |url: &Url| url.origin().ascii_serialization();
        Err(AddressError::OtherHost {
            found: origin(&self.0),
            expected: origin(endpoint.management()),
        })
    }

    /// The whole address with its signature, to be stored and nothing else.
    pub fn to_store(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Whether it answers the result of the operation (`Location`) instead of its state
    /// (`Azure-AsyncOperation`).
    pub(crate) fn is_of_result(&self) -> bool {
        let path = self.0.path().to_ascii_lowercase();
        path.contains("/operationresults/")
            || self.0.query_pairs().any(|(key, _)| key.eq_ignore_ascii_case("monitor"))
    }
}

impl fmt::Debug for OperationAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OperationAddress({self})")
    }
}

impl fmt::Display for OperationAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        write!(formatter, "{shown}?[hidden]")
    }
}

/// How a write was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The HTTP status.
    pub status: u16,
    /// The body; null if there is none.
    pub body: Value,
    /// The operation that runs on, if one does; or why its address is not followed. The write was
    /// accepted either way.
    pub operation: Result<Option<OperationAddress>, AddressError>,
    /// How long to wait before asking about it.
    pub retry_after: Option<Duration>,
}

/// Where an operation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationState {
    /// It runs, or does not say otherwise: only words that are known to be the end are the end.
    Running {
        /// How long to wait before asking again.
        retry_after: Option<Duration>,
        /// The word it is in, if it says one.
        status: Option<String>,
    },
    /// It is done; with what it gives, null mostly.
    Succeeded(Value),
    /// It failed.
    Failed(ArmFailure),
    /// A newer operation replaced it, or a client cancelled it.
    Canceled(ArmFailure),
    /// Azure does not know it any more: look at the resource instead.
    Expired,
}

impl OperationState {
    /// Reads what the address answered with a status between 200 and 299.
    pub(crate) fn of(
        address: &OperationAddress,
        status: u16,
        body: Value,
        retry_after: Option<Duration>,
    ) -> Self {
        let word = body
            .get("status")
            .or_else(|| body.pointer("/properties/provisioningState"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        let failure = || ArmFailure::of(body.get("error").unwrap_or(&Value::Null));
        match word.as_deref().map(str::to_ascii_lowercase).as_deref() {
            _ if status == 202 => Self::Running { retry_after, status: word },
            Some("succeeded") => Self::Succeeded(body),
            Some("failed") => Self::Failed(failure()),
            Some("canceled" | "cancelled") => Self::Canceled(failure()),
            // The result itself: whatever it is, it is there.
            None if address.is_of_result() || status == 204 => Self::Succeeded(body),
            _ => Self::Running { retry_after, status: word },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cloud::Cloud;

    const ADDRESS: &str = "https://management.azure.com/subscriptions/s/providers/Microsoft.Compute/locations/l/operations/o?t=1&c=CERT&s=SIGNATURE&h=HASH";

    fn address(text: &str) -> Result<OperationAddress, AddressError> {
        OperationAddress::parse(text, &Cloud::Public.endpoint())
    }

    #[test]
    fn an_address_is_stored_whole_and_shown_without_its_signature() {
        let address = address(ADDRESS).unwrap();
        assert_eq!(address.to_store(), ADDRESS);
        for text in [format!("{address:?}"), address.to_string()] {
            assert!(!text.contains("SIGNATURE") && !text.contains("CERT"), "{text}");
        }
    }

    #[test]
    fn an_address_that_leads_elsewhere_is_refused() {
        for (text, refused) in [
            (ADDRESS.replace("azure.com", "azure.com.evil.example"), "evil.example"),
            (ADDRESS.replace("https", "http"), "http://management.azure.com"),
            ("o".to_owned(), "not an address"),
            (format!("{ADDRESS}{}", "x".repeat(LONGEST)), "longer than"),
        ] {
            let error = address(&text).unwrap_err().to_string();
            assert!(error.contains(refused) && !error.contains("SIGNATURE"), "{error}");
        }
    }

    #[test]
    fn only_words_that_are_known_to_be_the_end_are_the_end() {
        let state = address(ADDRESS).unwrap();
        let result = address(&ADDRESS.replace("operations/o", "operationResults/o")).unwrap();
        let is_running = |state: &OperationState| matches!(state, OperationState::Running { .. });
        for (status, body) in [
            (200, json!({"status": "InProgress"})),
            (200, json!({"status": "Dancing"})),
            (200, json!({})),
            (200, json!({"status": 7})),
            (200, json!(null)),
            (202, json!({"status": "Succeeded"})),
        ] {
            let read = OperationState::of(&state, status, body.clone(), None);
            assert!(is_running(&read), "{status} {body}: {read:?}");
        }
        assert_eq!(
            OperationState::of(&result, 200, json!({"x": 1}), None),
            OperationState::Succeeded(json!({"x": 1}))
        );
        assert!(is_running(&OperationState::of(&result, 202, Value::Null, None)));
        let failed =
            OperationState::of(&state, 200, json!({"status": "Failed", "error": "why"}), None);
        let OperationState::Failed(failure) = failed else { panic!("{failed:?}") };
        assert_eq!(failure.message.as_deref(), Some("why"));
        let canceled = json!({"status": "canceled", "error": {"code": "OperationPreempted"}});
        assert!(matches!(
            OperationState::of(&state, 200, canceled, None),
            OperationState::Canceled(failure) if failure.code.as_deref() == Some("OperationPreempted")
        ));
    }
}
