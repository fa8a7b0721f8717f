//! Errors of Kubernetes, and the pause before a failed request is repeated.

use bringup_flex::engine::StoreError;
use jiff::SignedDuration;
use kube::api::{DeleteParams, Preconditions};

/// The pause after a failed request to Kubernetes.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(2);
/// The pause after a forbidden request: an operator must grant the permission first.
pub(super) const FORBIDDEN: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn pause(error: &kube::Error) -> SignedDuration {
    match error {
        kube::Error::Api(status) if status.code == 403 => FORBIDDEN,
        _ => RETRY,
    }
}

/// The error of an action, such as "read NodeClaim x".
pub(super) fn store_error(action: &str, error: &kube::Error) -> StoreError {
    match error {
        kube::Error::Api(status) if matches!(status.code, 404 | 409) => StoreError::Conflict,
        kube::Error::Api(status) if status.code == 403 => {
            StoreError::Denied(format!("forbidden to {action}: {error}"))
        }
        error => StoreError::Failed(format!("cannot {action}: {error}")),
    }
}

/// Parameters that delete only the object with this uid, and only in this version if one is given.
pub(super) fn exactly(uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    let preconditions = Preconditions { uid, resource_version };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}
