//! Rule `webhook`.
//!
//! Removes: the path of a webhook's address, since knowing it is all that is needed to post there
//! (Teams, Slack, Discord, and vendors that call it an integration, an input or a trigger), and the
//! token in the address of a bot of Telegram.
//!
//! Leaves alone: the host; webhooks of Kubernetes, whose paths are words.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::view::View;

const RULE: &str = "webhook";

/// How far from the word the address begins and ends.
const LONGEST: usize = 512;

/// At a word of a path, with its slashes.
pub(in crate::redaction) fn examine_path(scan: &mut Scan<'_>, anchor: Range<usize>) {
    examine(scan, anchor.start..anchor.end - 1);
}

/// At `webhook` and `hooks.`.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let before = view.slice(anchor.start.saturating_sub(LONGEST / 4)..anchor.start);
    let word = before.iter().rposition(|byte| is_end(*byte)).map_or(0, |blank| blank + 1);
    if memchr::memmem::find(&before[word..], b"://").is_none() {
        return;
    }
    let end = end_of_address(view, anchor.end);
    let Some(slash) = view.find(anchor.end..end, b"/") else { return };
    let path = anchor.end + slash + 1..end;
    let mut parts = view.slice(path.clone()).split(|byte| b"/?&=@".contains(byte));
    if parts.any(shape::is_opaque) {
        scan.strike(path, RULE);
    }
}

/// At `/bot`: `/bot<digits>:<letters>/`.
pub(in crate::redaction) fn examine_bot(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = end_of_address(view, anchor.end);
    let path = view.slice(anchor.end..end);
    let digits = path.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let token = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    if digits >= 6 && token.get(digits) == Some(&b':') && token.len() > digits + 20 {
        scan.strike(anchor.end..anchor.end + token.len(), RULE);
    }
}

fn is_end(byte: u8) -> bool {
    b" \t\"'`<>|()".contains(&byte)
}

fn end_of_address(view: &View, start: usize) -> usize {
    let limit = view.next_break(start + 1).min(start + LONGEST);
    let near = view.slice(start.min(limit)..limit);
    start + near.iter().position(|byte| is_end(*byte)).unwrap_or(near.len())
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn the_path_of_a_webhook_goes() {
        for (text, expected) in [
            (
                "post https://hooks.slack.example/services/T0ABC/B0DEF/aB3dE5gH7jK9mN1pQ3sT5vW7 x",
                "post https://hooks.slack.example/[redacted webhook] x",
            ),
            (
                "https://discord.example/api/webhooks/123456/aB3dE5gH7jK9mN1pQ3sT5vW7",
                "https://discord.example/api/webhooks/[redacted webhook]",
            ),
            (
                "https://api.telegram.example/bot123456789:AAaB3dE5gH7jK9mN1pQ3sT5/sendMessage",
                "https://api.telegram.example/bot[redacted webhook]/sendMessage",
            ),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn webhooks_of_kubernetes_stay() {
        assert_kept(&[
            "failed calling webhook \"x.example\": Post \"https://cert-manager-webhook.cert-manager.svc:443/mutate?timeout=10s\"",
            "https://host.example/robots.txt and /bottom",
        ]);
    }
}
