//! The activity log: its entries appear late, and contain the error as JSON in a text.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{moment, text};
use crate::error::ArmFailure;
use crate::id::ResourceId;

/// One entry of the activity log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityEntry {
    /// The time of the event.
    pub time: Option<Timestamp>,
    /// The operation, such as `Microsoft.Compute/virtualMachines/extensions/write`.
    pub operation: Option<String>,
    /// The result, such as `Failed`.
    pub status: Option<String>,
    /// The resource, if its ID can be parsed.
    pub resource_id: Option<ResourceId>,
    /// The text of the failure, unparsed.
    pub status_message: Option<String>,
    /// The failure in that text, parsed.
    pub failure: Option<ArmFailure>,
    /// The correlation ID, which all entries of one request share.
    pub correlation_id: Option<String>,
}

/// The entries of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityLog {
    /// The entries in Azure's order.
    pub entries: Vec<ActivityEntry>,
    /// Whether the list is complete: false if there were more pages than the client reads.
    pub complete: bool,
}

impl ActivityEntry {
    pub(crate) fn of(value: &Value) -> Self {
        // The field is either an object with a value and a translation, or a plain text.
        let word = |key: &str| {
            text(value, &format!("/{key}/value")).or_else(|| text(value, &format!("/{key}")))
        };
        let message = value.pointer("/properties/statusMessage");
        let failure = message.map(|message| {
            // `ArmFailure` parses a text; an object may contain `error`.
            ArmFailure::of(message.get("error").unwrap_or(message))
        });
        Self {
            time: moment(value, "/eventTimestamp"),
            operation: word("operationName"),
            status: word("status"),
            resource_id: text(value, "/resourceId")
                .or_else(|| text(value, "/resourceUri"))
                .and_then(|id| id.parse().ok()),
            status_message: message.and_then(|message| match message {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            }),
            failure: failure.filter(|failure| !failure.is_empty()),
            correlation_id: text(value, "/correlationId"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_message_is_read_as_text_as_json_in_text_and_as_json() {
        let inner = json!({"status": "Failed", "error": {"code": "A", "details": [{"code": "B"}]}});
        for (message, code) in [
            (json!(inner.to_string()), Some("A")),
            (inner.clone(), Some("A")),
            (json!("plain"), None),
        ] {
            let entry = ActivityEntry::of(&json!({"properties": {"statusMessage": message}}));
            assert_eq!(entry.failure.unwrap().code.as_deref(), code);
            assert!(entry.status_message.is_some());
        }
        for odd in [json!({}), json!(null), json!({"properties": {"statusMessage": null}})] {
            let entry = ActivityEntry::of(&odd);
            assert_eq!((entry.failure, entry.status_message), (None, None));
        }
    }
}
