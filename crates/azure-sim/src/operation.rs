//! Long-running operations, which a client polls after a PUT or DELETE.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply, arm_time};
use crate::route::{Id, Key};

/// The resource provider of an operation. Compute and network use different formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    Compute,
    Network,
}

/// The state of an operation.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    Running,
    Succeeded { output: Option<Value> },
    Failed(ArmError),
    Canceled(ArmError),
}

impl Progress {
    fn word(&self) -> &'static str {
        match self {
            Self::Running => "InProgress",
            Self::Succeeded { .. } => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::Canceled(_) => "Canceled",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) provider: Provider,
    /// The resource that the operation changes; throttling counts by resource.
    pub(crate) subject: Key,
    subscription: String,
    location: String,
    started: Timestamp,
    ended: Option<Timestamp>,
    pub(crate) progress: Progress,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperationId(pub(crate) String);

impl Azure {
    pub(crate) fn start_operation(
        &mut self,
        provider: Provider,
        subject: &Id,
        location: &str,
    ) -> OperationId {
        self.operations_started += 1;
        let id =
            OperationId(self.seed.of(&format!("operation/{}", self.operations_started)).uuid());
        self.operations.insert(
            id.clone(),
            Operation {
                provider,
                subject: subject.key(),
                subscription: subject.subscription.clone(),
                location: location.to_owned(),
                started: self.now,
                ended: None,
                progress: Progress::Running,
            },
        );
        id
    }

    /// Ends an operation. An ended operation no longer changes.
    pub(crate) fn end_operation(&mut self, id: &OperationId, progress: Progress) {
        let now = self.now;
        if let Some(operation) = self.operations.get_mut(id)
            && matches!(operation.progress, Progress::Running)
        {
            self.journal.state(now, &format!("operation {}", id.0), progress.word());
            operation.progress = progress;
            operation.ended = Some(now);
        }
    }

    /// Adds the headers that a client polls.
    pub(crate) fn follow(
        &self,
        call: &Call<'_>,
        reply: Reply,
        id: &OperationId,
        with_location: bool,
    ) -> Reply {
        let Some(operation) = self.operations.get(id) else {
            return reply;
        };
        let version = call.query("api-version").unwrap_or_default();
        // Real operation URLs have two to four kilobytes. A client that truncates them must fail in tests,
        // too.
        let certificate = self.seed.of(&format!("certificate/{}", id.0)).letters(1800);
        let (place, results) = match operation.provider {
            Provider::Compute => ("Microsoft.Compute", "operations"),
            Provider::Network => ("Microsoft.Network", "operationResults"),
        };
        let address = |kind: &str, monitor: &str| {
            format!(
                "{}/subscriptions/{}/providers/{place}/locations/{}/{kind}/{}?{monitor}api-version={version}&t={}&c={certificate}&s=SIGNATURE&h=HASH",
                call.base,
                operation.subscription,
                operation.location,
                id.0,
                operation.started.as_millisecond(),
            )
        };
        let mut reply = reply
            .with("azure-asyncnotification", "Enabled")
            .with("azure-asyncoperation", address("operations", ""));
        if with_location {
            let monitor =
                if operation.provider == Provider::Compute { "monitor=true&" } else { "" };
            reply = reply.with("location", address(results, monitor));
        }
        match self.scenario.quirks.retry_after {
            Some(seconds) => reply.with("retry-after", seconds.to_string()),
            None => reply,
        }
    }

    pub(crate) fn get_operation(
        &self,
        call: &Call<'_>,
        id: &str,
        results: bool,
    ) -> Result<Reply, ArmError> {
        let lives = SignedDuration::try_from(self.scenario.quirks.operation_address_lives.0)
            .unwrap_or(SignedDuration::MAX);
        let operation = self
            .operations
            .get(&OperationId(id.to_owned()))
            .filter(|operation| operation.started.duration_until(self.now) <= lives)
            .ok_or_else(|| {
                ArmError::new(404, "NotFound", format!("Operation '{id}' was not found."))
            })?;
        if results || call.query("monitor").is_some() {
            return Ok(operation.result(call));
        }
        Ok(Reply::json(200, operation.status(id)))
    }
}

impl Operation {
    /// The answer to a GET of `Azure-AsyncOperation`.
    fn status(&self, id: &str) -> Value {
        let mut body = match self.provider {
            Provider::Compute => json!({ "startTime": arm_time(self.started) }),
            Provider::Network => json!({}),
        };
        if let (Provider::Compute, Some(ended)) = (self.provider, self.ended) {
            body["endTime"] = arm_time(ended).into();
        }
        body["status"] = self.progress.word().into();
        match &self.progress {
            Progress::Failed(error) | Progress::Canceled(error) => body["error"] = error.body(),
            Progress::Succeeded { output: Some(output) } => {
                body["properties"] = json!({ "output": output });
            }
            Progress::Running | Progress::Succeeded { output: None } => {}
        }
        if self.provider == Provider::Compute {
            body["name"] = id.into();
        }
        body
    }

    /// The answer to a GET of `Location`.
    fn result(&self, call: &Call<'_>) -> Reply {
        match &self.progress {
            Progress::Running => {
                Reply::empty(202).with("location", format!("{}{}", call.base, call.path_and_query))
            }
            Progress::Succeeded { output: Some(output) } => Reply::json(200, output.clone()),
            Progress::Succeeded { output: None } => Reply::empty(204),
            Progress::Failed(error) | Progress::Canceled(error) => {
                ArmError { status: 409, ..error.clone() }.into_reply()
            }
        }
    }
}
