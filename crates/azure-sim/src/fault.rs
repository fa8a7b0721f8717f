//! Injected faults: the affected requests, how often they are affected, and how.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::Span;
use crate::seed::Seed;

/// One fault and the requests it applies to.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    /// The requests that the fault applies to.
    #[serde(default)]
    pub on: On,
    /// The effect on these requests.
    pub fault: Fault,
}

/// Selects the requests of a fault; all given conditions must hold.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct On {
    /// The HTTP method.
    pub method: Option<String>,
    /// A part of the path, compared without regard to case.
    pub path_contains: Option<String>,
    /// Skips this many matching requests first.
    pub after: u32,
    /// Then applies to this many requests; to all if absent.
    pub times: Option<u32>,
    /// The share of matching requests that the fault applies to, between 0 and 1.
    pub probability: Option<f64>,
    /// Not before this long after the start of the simulation.
    pub from: Option<Span>,
    /// Not later than this long after the start of the simulation.
    pub until: Option<Span>,
}

/// The effect of a fault. "Before" and "after" are before and after the effect of the request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fault {
    /// The connection breaks before the request has any effect.
    DropBefore,
    /// The connection breaks after the effect: the answer is lost.
    DropAfter,
    /// Azure answers with this status, without effect.
    StatusBefore(u16),
    /// Azure answers with this status although the request took effect.
    StatusAfter(u16),
    /// Too many requests.
    Throttle {
        /// `Retry-After` in seconds; absent: no such header.
        #[serde(default)]
        retry_after: Option<u64>,
        /// `Retry-After` as a date instead of a number.
        #[serde(default)]
        as_date: bool,
        /// A compute policy such as `LowCostGetResource`; absent: the front door.
        #[serde(default)]
        policy: Option<String>,
    },
    /// The answer comes this much later.
    Slow(Span),
    /// The previous answer to the same read is returned; without a previous answer, 404 or an empty list.
    Stale,
    /// A fixed answer, without effect: HTML from a proxy, an operation with an unknown status.
    Answer {
        /// The HTTP status.
        status: u16,
        /// Headers in addition to or instead of `content-type: application/json`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body, unchanged.
        #[serde(default)]
        body: String,
    },
    /// The body ends after this many bytes and the connection breaks.
    CutBody(usize),
    /// The clock jumps ahead by this much before the request is handled.
    ClockJump(Span),
}

/// The parts of a request that select faults.
#[derive(Debug)]
pub(crate) struct Struck<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Milliseconds since the simulation started.
    pub(crate) elapsed: u128,
}

/// All active faults, with how many requests each has matched.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: BTreeMap<u64, Armed>,
    next: u64,
}

#[derive(Debug)]
struct Armed {
    rule: FaultRule,
    met: u32,
    struck: u32,
}

impl Faults {
    pub(crate) fn arm(&mut self, rule: FaultRule) -> u64 {
        self.next += 1;
        self.rules.insert(self.next, Armed { rule, met: 0, struck: 0 });
        self.next
    }

    pub(crate) fn disarm(&mut self, id: u64) -> bool {
        self.rules.remove(&id).is_some()
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = (u64, &FaultRule, u32)> {
        self.rules.iter().map(|(id, armed)| (*id, &armed.rule, armed.struck))
    }

    /// The first fault that applies to this request. Counts the match for each rule.
    pub(crate) fn strike(&mut self, request: &Struck<'_>, seed: Seed) -> Option<Fault> {
        let mut struck = None;
        for (id, armed) in &mut self.rules {
            if !armed.rule.on.fits(request) {
                continue;
            }
            let nth = armed.met;
            armed.met += 1;
            let on = &armed.rule.on;
            let due = nth >= on.after
                && on.times.is_none_or(|times| armed.struck < times)
                && on
                    .probability
                    .is_none_or(|share| seed.of(&format!("fault/{id}/{nth}")).chance() < share);
            if due && struck.is_none() {
                armed.struck += 1;
                struck = Some(armed.rule.fault.clone());
            }
        }
        struck
    }
}

impl On {
    fn fits(&self, request: &Struck<'_>) -> bool {
        self.method.as_deref().is_none_or(|method| method.eq_ignore_ascii_case(request.method))
            && self.path_contains.as_deref().is_none_or(|part| {
                request.path.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
            })
            && self.from.is_none_or(|from| request.elapsed >= from.0.as_millis())
            && self.until.is_none_or(|until| request.elapsed <= until.0.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Struck<'_> {
        Struck { method: "GET", path, elapsed: 0 }
    }

    fn rule(on: On) -> FaultRule {
        FaultRule { on, fault: Fault::DropBefore }
    }

    #[test]
    fn a_fault_applies_as_often_and_as_late_as_its_rule_demands() {
        let mut faults = Faults::default();
        faults.arm(rule(On { after: 1, times: Some(2), ..On::default() }));
        let struck: Vec<bool> =
            (0..5).map(|_| faults.strike(&get("/x"), Seed::new(1)).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
    }

    #[test]
    fn a_fault_does_not_apply_to_other_requests() {
        let mut faults = Faults::default();
        let on = On { path_contains: Some("NetworkInterfaces".to_owned()), ..On::default() };
        faults.arm(rule(on));
        assert!(faults.strike(&get("/virtualMachines/a"), Seed::new(1)).is_none());
        assert!(faults.strike(&get("/networkinterfaces/a"), Seed::new(1)).is_some());
    }

    #[test]
    fn a_fault_with_a_probability_follows_the_seed() {
        let run = |seed| {
            let mut faults = Faults::default();
            faults.arm(rule(On { probability: Some(0.5), ..On::default() }));
            (0..64)
                .map(|_| faults.strike(&get("/x"), Seed::new(seed)).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
