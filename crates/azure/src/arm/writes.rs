//! Writes, and the operations that they start.

use std::fmt;

use azure_core::http::Method;
use bytes::Bytes;
use serde_json::Value;

use super::Arm;
use super::exchange::Ask;
use crate::budget::{Call, Door, Family, Operation};
use crate::error::{ArmError, ErrorKind};
use crate::id::{Name, ResourceId};
use crate::operation::{AddressError, OperationAddress, OperationState, Started};
use crate::reads::{Priority, Turn};

/// The kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates or replaces the resource.
    Put,
    /// Changes fields of the resource.
    Patch,
    /// Runs an action on the resource.
    Post,
    /// Deletes the resource.
    Delete,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Put => Method::Put,
            Self::Patch => Method::Patch,
            Self::Post => Method::Post,
            Self::Delete => Method::Delete,
        }
    }
}

/// A request that writes.
#[derive(Clone)]
pub struct Write<'a> {
    /// The kind of the write.
    pub verb: Verb,
    /// The resource to write.
    pub resource: &'a ResourceId,
    /// An action on the resource, such as `runCommand`.
    pub action: Option<&'a Name>,
    /// The API version of the resource provider.
    pub api_version: &'a str,
    /// Further query parameters, such as `forceDeletion`.
    pub query: &'a [(&'a str, &'a str)],
    /// The request body.
    pub body: Option<&'a Value>,
}

/// The condition of a write. If the condition is not met, Azure answers 412; a provider that supports no
/// conditions ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Only while the resource does not exist.
    Absent,
    /// Only while the resource has this etag.
    Unchanged(&'a str),
}

impl Condition<'_> {
    fn header(self) -> (&'static str, String) {
        match self {
            Self::Absent => ("if-none-match", "*".to_owned()),
            Self::Unchanged(etag) => ("if-match", etag.to_owned()),
        }
    }
}

/// Without the body, which may contain customData and protected settings.
impl fmt::Debug for Write<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Write")
            .field("verb", &self.verb)
            .field("resource", &self.resource.to_string())
            .field("action", &self.action.map(Name::as_str))
            .finish_non_exhaustive()
    }
}

impl Arm {
    /// Sends a write and returns its response, without waiting for the operation.
    ///
    /// After an error of kind [`ErrorKind::Network`] or [`ErrorKind::Unavailable`], Azure may still have
    /// executed the write.
    pub async fn start(&self, write: &Write<'_>) -> Result<Started, ArmError> {
        self.start_if(write, None).await
    }

    /// Sends a write that Azure executes only if a condition is met.
    pub async fn start_if(
        &self,
        write: &Write<'_>,
        condition: Option<Condition<'_>>,
    ) -> Result<Started, ArmError> {
        let Write { verb, resource, action, api_version, query, body } = write;
        let mut path = resource.url_path();
        if let Some(action) = action {
            path = format!("{path}/{}", action.encoded());
        }
        let query: Vec<_> = query.iter().copied().chain([("api-version", *api_version)]).collect();
        let ask = Ask {
            attempted: format!("{} {resource}", verb.method().as_str()),
            call: call(*verb, resource, action.is_some()),
            // Reads that only observe must not delay a write that was decided.
            turn: Priority::Event.into(),
            method: verb.method(),
            url: self.url(&path, &query),
            body: body.map(|body| Bytes::from(body.to_string())),
        };
        let answer = self.exchange_if(ask, condition.map(Condition::header)).await?;
        let followed = answer
            .header("azure-asyncoperation")
            .or_else(|| answer.header("location").filter(|_| matches!(answer.status, 201 | 202)));
        let operation: Result<Option<_>, AddressError> =
            followed.map(|text| OperationAddress::parse(text, &self.endpoint)).transpose();
        let (status, retry_after) = (answer.status, answer.retry_after);
        // The write was accepted, even if its body cannot be read.
        let body = answer.object_or_null().unwrap_or(Value::Null);
        Ok(Started { status, body, operation, retry_after })
    }

    /// Reads the state of an operation once. The URL may have been stored by another process.
    pub async fn poll(
        &self,
        address: &OperationAddress,
        turn: impl Into<Turn>,
    ) -> Result<OperationState, PollError> {
        // The URL may have been stored while another endpoint was configured.
        address.check(&self.endpoint)?;
        let path = address.url().path().to_owned();
        let subscription = path.split('/').nth(2).unwrap_or_default().to_owned();
        let answer = self
            .exchange(Ask {
                attempted: "ask how an operation stands".to_owned(),
                call: Call::new(
                    Operation::GetOperation,
                    Door::Reads,
                    Family::GetOperation,
                    &subscription,
                    &path,
                ),
                turn: turn.into(),
                method: Method::Get,
                url: address.url().clone(),
                body: None,
            })
            .await;
        match answer {
            Ok(answer) => {
                let (status, retry_after) = (answer.status, answer.retry_after);
                let body = answer.object_or_null()?;
                Ok(OperationState::of(address, status, body, retry_after))
            }
            Err(error) if error.is_not_found() => Ok(OperationState::Expired),
            // A `Location` URL answers a failed operation with a failed response.
            Err(error)
                if address.is_of_result()
                    && matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Rejected) =>
            {
                Ok(OperationState::Failed(error.failure().clone()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Why the state of an operation is unknown.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The URL is not one of this endpoint.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The request to Azure failed.
    #[error(transparent)]
    Arm(#[from] ArmError),
}

fn call(verb: Verb, resource: &ResourceId, acts: bool) -> Call {
    let door = match verb {
        Verb::Delete => Door::Deletes,
        Verb::Put | Verb::Patch | Verb::Post => Door::Writes,
    };
    let (family, limited) = match resource.machine() {
        None => (Family::Other, resource.to_string()),
        Some(machine) => {
            let family = match (acts || machine != *resource, verb) {
                (false, Verb::Delete) => Family::DeleteVm,
                (false, Verb::Put) => Family::PutVm,
                (true, _) | (false, Verb::Patch | Verb::Post) => Family::UpdateVm,
            };
            (family, machine.to_string())
        }
    };
    Call::new(Operation::Write, door, family, resource.subscription().as_str(), &limited)
}
