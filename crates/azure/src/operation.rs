//! Long-running operations of Azure. The URL of an operation is its whole state, so an operation survives a
//! restart.

use std::fmt;
use std::time::Duration;

use azure_core::http::Url;
use serde_json::Value;

use crate::cloud::Endpoint;
use crate::error::ArmFailure;

/// The most bytes in a URL: longer than any URL of Azure (two to four kilobytes).
const LONGEST: usize = 16 * 1024;

/// Why a URL is not requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not a URL.
    #[error("the address of the operation is not an address")]
    NotAnAddress,
    /// The text is longer than any URL of Azure.
    #[error("the address of the operation is longer than {LONGEST} bytes")]
    TooLong,
    /// The URL leads to another host, which would receive our token.
    #[error("the operation is at {found}, not at {expected}, and a token would be sent there")]
    OtherHost {
        /// The host in the URL.
        found: String,
        /// The endpoint's host.
        expected: String,
    },
}

/// The URL of an operation. It contains a signature, which is never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct OperationAddress(Url);

impl OperationAddress {
    /// Parses a URL from a response or from storage.
    pub fn parse(text: &str, endpoint: &Endpoint) -> Result<Self, AddressError> {
        if text.len() > LONGEST {
            return Err(AddressError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| AddressError::NotAnAddress)?;
        let address = Self(url);
        address.check(endpoint)?;
        Ok(address)
    }

    /// Whether a token may be sent to this URL.
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

    /// The whole URL with its signature. For storage only.
    pub fn to_store(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Whether the URL returns the operation's result (`Location`) instead of its state
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

/// The response to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The HTTP status.
    pub status: u16,
    /// The body; null if the response has none.
    pub body: Value,
    /// The operation that the write started, if any; or why its URL is not requested. Azure accepted the
    /// write in both cases.
    pub operation: Result<Option<OperationAddress>, AddressError>,
    /// How long to wait before the first poll.
    pub retry_after: Option<Duration>,
}

/// The state of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationState {
    /// The operation is in progress. Any status other than the known final ones counts as in progress.
    Running {
        /// How long to wait before the next poll.
        retry_after: Option<Duration>,
        /// The status, if the response contains one.
        status: Option<String>,
    },
    /// The operation succeeded, with this result (mostly null).
    Succeeded(Value),
    /// The operation failed.
    Failed(ArmFailure),
    /// A newer operation replaced this one, or a client cancelled it.
    Canceled(ArmFailure),
    /// Azure no longer knows the operation: read the resource instead.
    Expired,
}

impl OperationState {
    /// The state in a response with a status between 200 and 299.
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
            // The response is the result itself, in any form.
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
