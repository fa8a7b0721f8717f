//! The activity log. Entries appear late, never expire within a test, and carry the error as a JSON
//! text inside a JSON text.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply, arm_time};
use crate::resources::later;
use crate::route::Id;

#[derive(Debug)]
pub(crate) struct Entry {
    id: Id,
    at: Timestamp,
    visible: Timestamp,
    operation: &'static str,
    correlation: String,
    error: Option<ArmError>,
}

impl Azure {
    pub(crate) fn log_activity(
        &mut self,
        id: &Id,
        operation: &'static str,
        error: Option<&ArmError>,
    ) {
        let nth = self.activity.len();
        let delay = self.lasts(&format!("activity/{nth}"), 180.0, 1200.0);
        self.activity.push(Entry {
            id: id.clone(),
            at: self.now,
            visible: later(self.now, delay),
            operation,
            correlation: self.seed.of(&format!("correlation/{nth}")).uuid(),
            error: error.cloned(),
        });
    }

    pub(crate) fn get_activity_log(
        &self,
        call: &Call<'_>,
        subscription: &str,
    ) -> Result<Reply, ArmError> {
        let filter = call.query("$filter").unwrap_or_default();
        let value = |name: &str| {
            let at = filter.to_ascii_lowercase().find(&name.to_ascii_lowercase())?;
            filter[at..].split('\'').nth(1)
        };
        let since: Timestamp =
            value("eventTimestamp ge").and_then(|text| text.parse().ok()).ok_or_else(|| {
                ArmError::new(
                    400,
                    "BadRequest",
                    "The $filter must contain 'eventTimestamp ge' with a time.",
                )
            })?;
        let (resource, group) = (value("resourceUri eq"), value("resourceGroupName eq"));
        let items = self
            .activity
            .iter()
            .filter(|entry| {
                entry.visible <= self.now
                    && entry.at >= since
                    && entry.id.subscription.eq_ignore_ascii_case(subscription)
                    && resource.is_none_or(|uri| entry.id.to_string().eq_ignore_ascii_case(uri))
                    && group.is_none_or(|group| entry.id.group.eq_ignore_ascii_case(group))
            })
            .map(Entry::body)
            .collect();
        Ok(Reply::list(items, None))
    }
}

impl Entry {
    fn body(&self) -> Value {
        let named = |value: &str| json!({ "value": value, "localizedValue": value });
        let (status, level, code) = match self.error {
            None => ("Succeeded", "Informational", "OK"),
            Some(_) => ("Failed", "Error", "Conflict"),
        };
        let mut properties = json!({
            "eventCategory": "Administrative",
            "entity": self.id.to_string(),
            "statusCode": code,
        });
        if let Some(error) = &self.error {
            let message = json!({ "status": "Failed", "error": {
                "code": "ResourceOperationFailure",
                "message": "The resource operation completed with terminal provisioning state 'Failed'.",
                "details": [error.body()],
            } });
            properties["statusMessage"] = message.to_string().into();
        }
        json!({
            "eventTimestamp": arm_time(self.at),
            "submissionTimestamp": arm_time(self.visible),
            "correlationId": self.correlation,
            "operationName": named(&format!("Microsoft.Compute/{}", self.operation)),
            "status": named(status),
            "subStatus": named(""),
            "level": level,
            "category": named("Administrative"),
            "resourceGroupName": self.id.group,
            "resourceProviderName": named("Microsoft.Compute"),
            "resourceId": self.id.to_string(),
            "properties": properties,
        })
    }
}
