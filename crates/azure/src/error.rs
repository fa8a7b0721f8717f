//! One classification of all errors between bringup and Azure.

mod authorization;
mod failure;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use failure::ArmFailure;

use crate::scrub::scrub;

/// The kind of an error, by which callers decide.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The resource does not exist, according to the front door or the provider.
    NotFound,
    /// Azure knows the identity, and the identity lacks a permission.
    Forbidden {
        /// The missing permission, such as `Microsoft.Compute/virtualMachines/read`.
        action: Option<String>,
        /// The scope in which the permission is missing.
        scope: Option<String>,
    },
    /// No token could be obtained, or Azure does not accept the token.
    Unauthenticated,
    /// Azure throttled the request.
    Throttled {
        /// The policy that throttles; absent: the front door.
        policy: Option<String>,
        /// How long to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// The state of the resource does not allow the request.
    Conflict,
    /// Azure has an internal problem. A write may have been accepted all the same.
    Unavailable {
        /// How long to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// No response arrived, or only a part of one. A write may have been accepted all the same.
    Network,
    /// The response cannot be parsed as expected.
    Malformed {
        /// The problem with the response.
        what: &'static str,
    },
    /// Azure refused the request for another reason: see [`ArmError::code`].
    Rejected,
}

/// The error of a request.
///
/// Its text contains the attempted action and Azure's answer, but never a token or a signature.
#[derive(Debug)]
pub struct ArmError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    attempted: String,
    status: Option<u16>,
    failure: ArmFailure,
    request_id: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The fields of an error response that bringup uses.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) failure: ArmFailure,
    pub(crate) policy: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) request_id: Option<String>,
}

impl ArmError {
    /// The error of a response that is not a success.
    pub(crate) fn refused(attempted: impl Into<String>, refusal: Refusal) -> Self {
        let Refusal { status, failure, policy, retry_after, request_id } = refusal;
        let failure = failure.scrubbed();
        let kind = match status {
            404 | 410 => ErrorKind::NotFound,
            401 => ErrorKind::Unauthenticated,
            403 => {
                let (action, scope) =
                    authorization::missing(failure.message.as_deref().unwrap_or_default());
                ErrorKind::Forbidden { action, scope }
            }
            429 => ErrorKind::Throttled { policy, retry_after },
            409 | 412 => ErrorKind::Conflict,
            408 | 500..=599 => ErrorKind::Unavailable { retry_after },
            _ => ErrorKind::Rejected,
        };
        Self(Box::new(Inner {
            kind,
            attempted: attempted.into(),
            status: Some(status),
            failure,
            request_id,
            source: None,
        }))
    }

    /// The error of a successful response that cannot be parsed.
    pub(crate) fn malformed(
        attempted: impl Into<String>,
        status: u16,
        what: &'static str,
        source: Option<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self(Box::new(Inner {
            kind: ErrorKind::Malformed { what },
            attempted: attempted.into(),
            status: Some(status),
            failure: ArmFailure::default(),
            request_id: None,
            source,
        }))
    }

    /// The error of a request without a response.
    pub(crate) fn unanswered(attempted: impl Into<String>, error: azure_core::Error) -> Self {
        let kind = match error.kind() {
            // Only a credential causes an error with a response here: responses to our own requests are no
            // errors.
            azure_core::error::ErrorKind::Credential
            | azure_core::error::ErrorKind::HttpResponse { .. } => ErrorKind::Unauthenticated,
            _ => ErrorKind::Network,
        };
        Self(Box::new(Inner {
            kind,
            attempted: attempted.into(),
            status: None,
            failure: ArmFailure::default(),
            request_id: None,
            source: Some(Box::new(error)),
        }))
    }

    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The HTTP status, if a response arrived.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Azure's code, message and details, without signatures and tokens.
    pub fn failure(&self) -> &ArmFailure {
        &self.0.failure
    }

    /// ARM's error code, such as `ResourceNotFound`.
    pub fn code(&self) -> Option<&str> {
        self.0.failure.code.as_deref()
    }

    /// ARM's message.
    pub fn message(&self) -> Option<&str> {
        self.0.failure.message.as_deref()
    }

    /// The request ID, for Microsoft's support.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long Azure asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.kind {
            ErrorKind::Throttled { retry_after, .. } | ErrorKind::Unavailable { retry_after } => {
                retry_after
            }
            ErrorKind::NotFound
            | ErrorKind::Forbidden { .. }
            | ErrorKind::Unauthenticated
            | ErrorKind::Conflict
            | ErrorKind::Network
            | ErrorKind::Malformed { .. }
            | ErrorKind::Rejected => None,
        }
    }

    /// Whether the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }
}

impl fmt::Display for ArmError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, attempted, status, failure, .. } = &*self.0;
        write!(formatter, "cannot {attempted}: ")?;
        match kind {
            ErrorKind::Network => formatter.write_str("no whole answer came")?,
            ErrorKind::Malformed { what } => write!(formatter, "the answer is {what}")?,
            ErrorKind::Unauthenticated if status.is_none() => {
                formatter.write_str("no access token is available")?;
            }
            ErrorKind::NotFound
            | ErrorKind::Forbidden { .. }
            | ErrorKind::Unauthenticated
            | ErrorKind::Throttled { .. }
            | ErrorKind::Conflict
            | ErrorKind::Unavailable { .. }
            | ErrorKind::Rejected => {
                write!(formatter, "Azure answered {}", status.unwrap_or_default())?;
                if let Some(code) = &failure.code {
                    write!(formatter, " {code}")?;
                }
            }
        }
        match &failure.message {
            Some(message) => write!(formatter, ": {}", scrub(message)),
            None => Ok(()),
        }
    }
}

impl StdError for ArmError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, body: &serde_json::Value) -> ArmError {
        let failure = ArmFailure::of_body(body);
        ArmError::refused(
            "read virtual machine a",
            Refusal { status, failure, policy: None, retry_after: None, request_id: None },
        )
    }

    #[test]
    fn both_shapes_of_404_are_not_found() {
        let door = json!({"error": {"code": "ResourceNotFound", "message": "The Resource 'x' under resource group 'g' was not found."}});
        let provider = json!({"error": {"code": "NotFound", "message": "The entity was not found in this Azure location."}});
        for body in [door, provider] {
            assert!(refused(404, &body).is_not_found());
        }
    }

    #[test]
    fn a_text_says_what_was_attempted_and_what_was_answered() {
        let error =
            refused(409, &json!({"error": {"code": "OperationNotAllowed", "message": "Not now."}}));
        assert_eq!(
            error.to_string(),
            "cannot read virtual machine a: Azure answered 409 OperationNotAllowed: Not now."
        );
        assert_eq!(error.kind(), &ErrorKind::Conflict);
    }

    #[test]
    fn no_signature_and_no_token_stands_in_any_text() {
        let message = "GET https://h/b?sig=AbCd%3D&se=1 with Bearer eyJhbGciOiJSUzI1NiJ9.e30.abc";
        let error = refused(
            400,
            &json!({"error": {"code": "X", "message": message, "details": [{"message": message}]}}),
        );
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("AbCd") && !text.contains("eyJ"), "{text}");
        }
    }
}
