//! Is the clock right, compared with the platform's clock and with the certificate of the cluster's
//! authority?

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::Cause;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Finding, State, Subject, certificate, platform};

/// The clock error that tokens and certificates tolerate.
const TOLERATED: SignedDuration = SignedDuration::from_mins(5);

/// The known times to compare the clock with.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The time of the platform's clock.
    platform: Option<Timestamp>,
    /// The validity period of the certificate of the cluster's authority.
    authority: Option<(Timestamp, Timestamp)>,
}

pub(super) fn check(subject: &Subject) -> Finding {
    let authority = subject.variable("KUBE_CA_CRT").and_then(|text| {
        let pem = STANDARD.decode(text.trim()).ok()?;
        certificate::validity(&pem)
    });
    let ask = |at, path| platform::ask(at, path).ok()?.date;
    let imds = || ask(subject.endpoints.imds?, "/metadata/versions");
    let wire_server = || ask(*subject.endpoints.wire_server.first()?, "/?comp=versions");
    let known = Known { platform: imds().or_else(wire_server), authority };
    judge(Timestamp::now(), known)
}

fn judge(now: Timestamp, known: Known) -> Finding {
    let data = json!({
        "now": now.to_string(),
        "platform": known.platform.map(|at| at.to_string()),
        "authority": known.authority.map(|(from, to)| [from.to_string(), to.to_string()]),
    });
    let skew = known.platform.map(|platform| now.duration_since(platform));
    let wrong = match (skew, known.authority) {
        (Some(skew), _) if skew.abs() > TOLERATED => {
            let direction = if skew.is_negative() { "behind" } else { "ahead of" };
            let seconds = skew.abs().as_secs();
            Some(format!("the clock is {seconds} s {direction} the platform's"))
        }
        (_, Some((from, _))) if now < from => {
            Some(format!("it is {now}, and the cluster's CA holds from {from} on"))
        }
        (_, Some((_, to))) if now > to => {
            Some(format!("it is {now}, and the cluster's CA held until {to}"))
        }
        _ => None,
    };
    match (wrong, skew, known.authority) {
        (Some(detail), _, _) => {
            Finding::new("clock", State::Warn, &detail, data).because(Cause::ClockSkew)
        }
        (None, None, None) => {
            Finding::new("clock", State::Skipped, "no time source is available", data)
        }
        (None, _, _) => Finding::new("clock", State::Ok, "it goes right", data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_right_within_five_minutes_and_within_the_life_of_the_authority() {
        let now: Timestamp = "2026-01-27T14:30:00Z".parse().unwrap();
        let hours = SignedDuration::from_hours;
        let year = hours(24 * 365);
        let state = |platform, authority| judge(now, Known { platform, authority }).state;
        assert_eq!(state(None, None), State::Skipped);
        assert_eq!(state(Some(now - SignedDuration::from_secs(299)), None), State::Ok);
        assert_eq!(state(Some(now - SignedDuration::from_secs(301)), None), State::Warn);
        assert_eq!(state(Some(now + hours(1)), Some((now - year, now + year))), State::Warn);
        assert_eq!(state(None, Some((now - year, now + year))), State::Ok);
        assert_eq!(state(None, Some((now + year, now + year + year))), State::Warn);
        assert_eq!(state(Some(now), Some((now - year - year, now - year))), State::Warn);
    }
}
