//! Conditions: their types and reasons, and how two of them are compared.

use std::borrow::Cow;

use jiff::Timestamp;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What the Custom Script extension itself said.
pub const CSE_PROVISIONED: &str = "CSEProvisioned";
/// Our verdict.
pub const BOOTSTRAP_SUCCEEDED: &str = "BootstrapSucceeded";
/// The conditions that are ours on a NodeClaim.
pub const OURS: [&str; 2] = [CSE_PROVISIONED, BOOTSTRAP_SUCCEEDED];

/// Reasons that are not causes.
pub mod reason {
    /// The extension's script runs.
    pub const CSE_RUNNING: &str = "CSERunning";
    /// The extension's script succeeded.
    pub const CSE_SUCCEEDED: &str = "CSESucceeded";
    /// The extension failed.
    pub const CSE_FAILED: &str = "CSEFailed";
    /// No verdict yet.
    pub const DIAGNOSING: &str = "Diagnosing";
    /// The node has joined.
    pub const NODE_REGISTERED: &str = "NodeRegistered";
}

/// Names of other people's conditions.
pub mod karpenter {
    /// The VM was asked for and accepted.
    pub const LAUNCHED: &str = "Launched";
    /// The Node is there.
    pub const REGISTERED: &str = "Registered";
    /// Why a standalone claim was not launched.
    pub const CREATE_INSTANCE_FAILED: &str = "CreateInstanceFailed";
}

/// The three values of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known yet.
    Unknown,
}

impl Status {
    /// As Kubernetes writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The longest message: events and tables stay readable, and no API server refuses it.
pub const LONGEST_MESSAGE: usize = 1024;

/// A condition. The message is cut where it is too long.
pub fn condition(
    kind: &str,
    status: Status,
    reason: &str,
    message: &str,
    since: Timestamp,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.word().to_owned(),
        reason: reason.to_owned(),
        message: cut(&printable(message), LONGEST_MESSAGE),
        // Kubernetes keeps whole seconds; anything finer would differ from what it answers.
        last_transition_time: Time(Timestamp::from_second(since.as_second()).unwrap_or(since)),
        observed_generation: None,
    }
}

/// A text without letters that the API server refuses in an apply patch, which it reads as YAML.
fn printable(text: &str) -> Cow<'_, str> {
    let is_refused = |letter: char| {
        let is_control = letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
        is_control || matches!(letter, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if text.contains(is_refused) {
        text.replace(is_refused, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// A text of at most `most` bytes, with an ellipsis where something was left out.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most.saturating_sub('…'.len_utf8()))];
    format!("{}…", kept.trim_end())
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Keeps the moment of the last transition where only reason or message changed.
pub fn settle(mut wanted: Condition, present: Option<&Condition>) -> Condition {
    if let Some(present) = present
        && present.status == wanted.status
    {
        wanted.last_transition_time = present.last_transition_time.clone();
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let before = condition("A", Status::False, "X", "one", at(10));
        let same = settle(condition("A", Status::False, "Y", "two", at(99)), Some(&before));
        assert_eq!((same.last_transition_time.0, same.reason.as_str()), (at(10), "Y"));
        let turned = settle(condition("A", Status::True, "Y", "two", at(99)), Some(&before));
        assert_eq!(turned.last_transition_time.0, at(99));
    }

    #[test]
    fn letters_that_no_patch_may_hold_are_replaced() {
        let message = |text: &str| condition("A", Status::False, "X", text, at(1)).message;
        assert_eq!(message("a\u{7f}b\u{85}c\u{feff}\0"), "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}");
        assert_eq!(message("one\n\ttwo é 🕴"), "one\n\ttwo é 🕴");
    }

    #[test]
    fn a_long_message_is_cut_between_letters() {
        let long = cut(&"é".repeat(1000), 1024);
        assert!(long.len() <= 1024 && long.ends_with('…'));
        assert_eq!(cut("short", 1024), "short");
    }
}
