//! A failure in ARM's format, wherever it occurs: the `error` of a body or an operation, a machine's
//! `provisioningError`, an activity log entry's `statusMessage`.

use serde_json::Value;

use crate::scrub::scrub;

/// The deepest nesting of details. Deeper ones are dropped.
const DEEPEST: usize = 8;

/// Code, message and details of a failure, each if present.
///
/// The text is Azure's own, and may contain output of bootstrap scripts: redact it before it is logged,
/// stored or shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArmFailure {
    /// The error code, such as `VMExtensionProvisioningError`.
    pub code: Option<String>,
    /// The message for a person.
    pub message: Option<String>,
    /// The property or resource that failed.
    pub target: Option<String>,
    /// Inner failures.
    pub details: Vec<ArmFailure>,
}

impl ArmFailure {
    /// The failure in the body of a response: under `error`, or directly in the body, as in Compute's 429.
    pub(crate) fn of_body(body: &Value) -> Self {
        Self::of(body.get("error").unwrap_or(body))
    }

    /// A failure from an `error` object, or from a text, which may itself be JSON.
    pub fn of(error: &Value) -> Self {
        Self::nested(error, 0)
    }

    fn nested(error: &Value, depth: usize) -> Self {
        if let Some(text) = error.as_str() {
            return match serde_json::from_str::<Value>(text) {
                Ok(inner @ Value::Object(_)) if depth < DEEPEST => {
                    Self::nested(inner.get("error").unwrap_or(&inner), depth + 1)
                }
                _ => Self { message: Some(text.to_owned()), ..Self::default() },
            };
        }
        let text = |key: &str| error.get(key)?.as_str().map(str::to_owned);
        let details = match error.get("details").and_then(Value::as_array) {
            Some(details) if depth < DEEPEST => {
                details.iter().map(|detail| Self::nested(detail, depth + 1)).collect()
            }
            _ => Vec::new(),
        };
        Self { code: text("code"), message: text("message"), target: text("target"), details }
    }

    /// Whether the failure has no content.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This failure and all inner ones, outermost first.
    pub fn chain(&self) -> Vec<&ArmFailure> {
        let mut chain = vec![self];
        let mut at = 0;
        while let Some(failure) = chain.get(at).copied() {
            chain.extend(&failure.details);
            at += 1;
        }
        chain
    }

    /// The failure without signatures and tokens.
    pub(crate) fn scrubbed(self) -> Self {
        let clean = |text: Option<String>| text.map(|text| scrub(&text));
        Self {
            code: clean(self.code),
            message: clean(self.message),
            target: clean(self.target),
            details: self.details.into_iter().map(Self::scrubbed).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_is_read_from_every_shape() {
        for (body, code, message) in [
            (json!({"error": {"code": "A", "message": "b"}}), Some("A"), Some("b")),
            (json!({"code": "A", "message": "b"}), Some("A"), Some("b")),
            (json!({"error": "plain text"}), None, Some("plain text")),
            (json!({"error": "{\"error\": {\"code\": \"A\"}}"}), Some("A"), None),
            (json!({"error": {"code": 7, "message": null}}), None, None),
            (json!({"error": null}), None, None),
            (json!([]), None, None),
            (json!("gateway"), None, Some("gateway")),
        ] {
            let failure = ArmFailure::of_body(&body);
            assert_eq!(
                (failure.code.as_deref(), failure.message.as_deref()),
                (code, message),
                "{body}"
            );
        }
    }

    #[test]
    fn details_are_walked_outermost_first() {
        let failure = ArmFailure::of(&json!({"code": "A", "details": [
            {"code": "B", "details": [{"code": "D"}]}, {"code": "C"}, "text", null
        ]}));
        let codes: Vec<_> = failure.chain().iter().filter_map(|f| f.code.as_deref()).collect();
        assert_eq!(codes, ["A", "B", "C", "D"]);
    }

    #[test]
    fn endless_nesting_is_cut() {
        let mut error = json!({"code": "innermost"});
        for _ in 0..100 {
            error = json!({"code": "X", "details": [error]});
        }
        assert_eq!(ArmFailure::of(&error).chain().len(), DEEPEST + 1);
    }
}
