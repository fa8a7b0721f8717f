//! Back-off: VMs that bringup does not request yet, because Azure has refused them.

use std::collections::BTreeMap;

use bringup_contract::Cause;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::class::CapacityType;
use crate::time::later;
use crate::trouble::{Scope, Trouble};

/// The first pause of a class that hunts for scarce capacity.
const HUNT: SignedDuration = SignedDuration::from_mins(2);
/// The longest pause of such a class.
const LONGEST_HUNT: SignedDuration = SignedDuration::from_mins(30);
/// The most requests in a minute, over all classes, for VMs that Azure has refused before.
const MOST_A_MINUTE: usize = 2;
/// The time after which an unanswered attempt counts as lost.
const ANSWERED: SignedDuration = SignedDuration::from_mins(5);

/// The properties of a requested VM that a refusal may apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmRequest<'a> {
    /// The VM's subscription.
    pub subscription: &'a str,
    /// The VM's region.
    pub region: &'a str,
    /// The VM's size.
    pub size: &'a str,
    /// The quota family of the size.
    pub family: &'a str,
    /// The VM's capacity type.
    pub capacity_type: CapacityType,
    /// The VM's zone, if one is requested.
    pub zone: Option<&'a str>,
    /// The machine's class.
    pub class: &'a str,
    /// The most attempts an hour, if the class hunts for scarce capacity.
    pub hunting: Option<u32>,
}

impl VmRequest<'_> {
    /// The key of one of the request's scopes. The key contains the region, because a refusal in one region
    /// proves nothing about another.
    fn key(&self, scope: Scope) -> String {
        let Self { subscription, region, size, family, class, .. } = self;
        let (kind, zone) = (self.capacity_type.word(), self.zone.unwrap_or("-"));
        match scope {
            Scope::RegionSpot => format!("{subscription}/{region}/spot"),
            Scope::RegionFamily => format!("{subscription}/{region}/family {family}/{kind}"),
            Scope::Region => format!("{subscription}/{region}"),
            Scope::Size => format!("{subscription}/{region}/{size}/{kind}/zone {zone}"),
            Scope::Class => format!("class {class}"),
        }
    }

    fn scopes(&self) -> impl Iterator<Item = Scope> {
        let spot = (self.capacity_type == CapacityType::Spot).then_some(Scope::RegionSpot);
        [Scope::RegionFamily, Scope::Region, Scope::Size, Scope::Class].into_iter().chain(spot)
    }
}

/// A stored refusal from Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// No request is sent before this time.
    pub until: Timestamp,
    /// The time of the last refusal.
    pub last: Timestamp,
    /// The cause of the refusal.
    pub cause: String,
    /// Azure's error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The number of refusals in a row.
    pub times: u32,
    /// The start of a new attempt that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<Timestamp>,
}

/// A request for a VM that Azure has refused before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Attempt {
    at: Timestamp,
    class: String,
}

/// All refusals that still apply. The ledger stores them, so they survive a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackOff {
    refusals: BTreeMap<String, Entry>,
    attempts: Vec<Attempt>,
}

/// The pause of a class that hunts, after this many refusals in a row.
pub fn hunting_pause(times: u32) -> SignedDuration {
    (HUNT * (1 << times.saturating_sub(1).min(4))).min(LONGEST_HUNT)
}

impl BackOff {
    /// Records a refusal.
    pub fn refused(&mut self, request: &VmRequest<'_>, trouble: &Trouble, now: Timestamp) {
        let Some((scope, time)) = trouble.back_off else { return };
        let key = request.key(scope);
        let known = self.refusals.get(&key);
        // Requests that were sent together all get the same refusal, so the refusal counts once.
        let is_echo = known.is_some_and(|entry| entry.until > now && entry.asking.is_none());
        let times = known.map_or(0, |entry| entry.times).saturating_add(u32::from(!is_echo));
        let scarce = matches!(
            trouble.cause,
            Cause::QuotaExceeded | Cause::AllocationFailed | Cause::SkuUnavailable
        );
        // A class that hunts continues to try, at growing intervals.
        let time = if request.hunting.is_some() && scarce { hunting_pause(times) } else { time };
        let entry = Entry {
            until: later(now, time),
            last: now,
            cause: trouble.cause.reason().to_owned(),
            code: trouble.code.clone(),
            times,
            asking: None,
        };
        self.refusals.insert(key, entry);
    }

    /// Azure has created such a VM, so earlier refusals are dropped. Returns whether there were any.
    pub fn granted(&mut self, request: &VmRequest<'_>) -> bool {
        let before = self.refusals.len();
        for scope in request.scopes() {
            self.refusals.remove(&request.key(scope));
        }
        self.refusals.len() < before
    }

    /// The refusal that prevents this request now: the one that applies longest. A refusal that has expired
    /// still prevents the request while another attempt is under way, or after too many recent attempts.
    pub fn blocks(&self, request: &VmRequest<'_>, now: Timestamp) -> Option<&Entry> {
        let known = || request.scopes().filter_map(|scope| self.refusals.get(&request.key(scope)));
        let holds = known().filter(|entry| entry.until > now).max_by_key(|entry| entry.until);
        let exhausted = self.is_exhausted(request, now);
        holds.or_else(|| known().find(|entry| exhausted || entry.is_under_way(now)))
    }

    /// Whether there were too many recent attempts, of all classes or of the request's class.
    fn is_exhausted(&self, request: &VmRequest<'_>, now: Timestamp) -> bool {
        let since = |time| self.attempts.iter().filter(move |one| later(one.at, time) > now);
        let hour = since(SignedDuration::from_hours(1)).filter(|one| one.class == request.class);
        since(SignedDuration::from_mins(1)).count() >= MOST_A_MINUTE
            || request.hunting.is_some_and(|most| hour.count() >= most as usize)
    }

    /// Records an attempt. Returns whether Azure had refused such a VM before.
    pub fn attempted(&mut self, request: &VmRequest<'_>, now: Timestamp) -> bool {
        let mut again = false;
        for scope in request.scopes() {
            if let Some(entry) = self.refusals.get_mut(&request.key(scope)) {
                entry.asking = Some(now);
                again = true;
            }
        }
        if again {
            self.attempts.retain(|one| later(one.at, SignedDuration::from_hours(1)) > now);
            self.attempts.push(Attempt { at: now, class: request.class.to_owned() });
        }
        again
    }

    /// Drops refusals that expired a day ago.
    pub fn prune(&mut self, now: Timestamp) {
        self.refusals.retain(|_, entry| later(entry.until, SignedDuration::from_hours(24)) > now);
    }

    /// All refusals with their keys, to show to users.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.refusals.iter().map(|(key, entry)| (key.as_str(), entry))
    }
}

impl Entry {
    /// Whether an attempt is under way and still unanswered.
    fn is_under_way(&self, now: Timestamp) -> bool {
        self.asking.is_some_and(|since| later(since, ANSWERED) > now)
    }
}

#[cfg(test)]
mod tests {
    use bringup_azure::error::ArmFailure;

    use super::*;

    fn request<'a>(region: &'a str, size: &'a str) -> VmRequest<'a> {
        VmRequest {
            subscription: "s",
            region,
            size,
            family: "standardDSv5Family",
            capacity_type: CapacityType::OnDemand,
            zone: None,
            class: "default",
            hunting: None,
        }
    }

    fn trouble(code: &str, message: &str) -> Trouble {
        let failure = ArmFailure {
            code: Some(code.to_owned()),
            message: Some(message.to_owned()),
            ..ArmFailure::default()
        };
        Trouble::of_failure(&failure, false)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    #[test]
    fn case_42_a_refusal_holds_for_its_region_and_size_and_for_no_other() {
        let mut table = BackOff::default();
        let (here, there) = (request("eastus", "D8"), request("westus", "D8"));
        table.refused(&here, &trouble("AllocationFailed", ""), at(0));
        assert_eq!(
            table.blocks(&here, at(1)).map(|entry| entry.cause.as_str()),
            Some("AllocationFailed")
        );
        assert_eq!(table.blocks(&there, at(1)), None);
        assert_eq!(table.blocks(&request("eastus", "D4"), at(1)), None);
        let spot = VmRequest { capacity_type: CapacityType::Spot, ..here };
        assert_eq!(table.blocks(&spot, at(1)), None);
        assert_eq!(table.blocks(&here, at(3_600)), None);
    }

    #[test]
    fn case_42_a_quota_of_a_family_or_a_region_holds_for_all_of_it() {
        let mut table = BackOff::default();
        table.refused(
            &request("eastus", "D8"),
            &trouble(
                "OperationNotAllowed",
                "exceeding approved standardDSv5Family Cores quota. Current Limit: 10,",
            ),
            at(0),
        );
        assert!(table.blocks(&request("eastus", "D4"), at(1)).is_some());
        let other = VmRequest { family: "standardNDSv5Family", ..request("eastus", "ND") };
        assert_eq!(table.blocks(&other, at(1)), None);
        table.refused(
            &request("eastus", "D8"),
            &trouble("OperationNotAllowed", "approved Total Regional Cores quota"),
            at(0),
        );
        assert!(table.blocks(&other, at(1)).is_some());
        table.granted(&other);
        assert_eq!(table.blocks(&other, at(1)), None);
    }

    #[test]
    fn a_class_that_hunts_tries_ever_more_seldom_and_at_least_each_half_hour() {
        let mut table = BackOff::default();
        let here = VmRequest { hunting: Some(60), ..request("eastus", "D8") };
        let mut pauses = Vec::new();
        for _ in 0..6 {
            table.attempted(&here, at(0));
            table.refused(&here, &trouble("SkuNotAvailable", ""), at(0));
            let entry = table.blocks(&here, at(0)).unwrap();
            pauses.push(at(0).duration_until(entry.until).as_secs() / 60);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30]);
        table.granted(&here);
        table.refused(&here, &trouble("SkuNotAvailable", ""), at(0));
        assert_eq!(table.blocks(&here, at(0)).map(|entry| entry.times), Some(1));
    }

    #[test]
    fn requests_sent_at_once_are_refused_once() {
        let mut table = BackOff::default();
        let here = VmRequest { hunting: Some(60), ..request("eastus", "D8") };
        for second in 0..5 {
            table.refused(&here, &trouble("SkuNotAvailable", ""), at(second));
        }
        assert_eq!(table.blocks(&here, at(5)).map(|entry| entry.times), Some(1));
    }

    #[test]
    fn one_attempt_at_a_time_two_in_a_minute_and_the_number_of_the_class_in_an_hour() {
        let mut table = BackOff::default();
        let requests =
            ["a", "b", "c"].map(|region| VmRequest { hunting: Some(3), ..request(region, "D8") });
        for request in &requests {
            table.refused(request, &trouble("SkuNotAvailable", ""), at(0));
            assert!(table.blocks(request, at(119)).is_some());
            assert_eq!(table.blocks(request, at(120)), None, "the first pause is over");
        }
        assert!(table.attempted(&requests[0], at(120)));
        assert!(table.blocks(&requests[0], at(121)).is_some(), "an attempt is under way");
        assert_eq!(
            table.blocks(&requests[1], at(121)),
            None,
            "no attempt is under way in another region"
        );
        assert!(table.attempted(&requests[1], at(121)));
        assert!(table.blocks(&requests[2], at(122)).is_some(), "two in a minute are enough");
        assert_eq!(table.blocks(&requests[2], at(181)), None);
        assert!(table.attempted(&requests[2], at(181)));
        let other = VmRequest { hunting: Some(3), ..request("d", "D8") };
        table.refused(&other, &trouble("SkuNotAvailable", ""), at(181));
        assert!(
            table.blocks(&other, at(1_000)).is_some(),
            "three in an hour are the class's limit"
        );
        assert_eq!(table.blocks(&other, at(4_000)), None);
        let new = request("e", "D8");
        assert!(!table.attempted(&new, at(4_000)), "what was never refused is no attempt");
        // An attempt that was never answered does not block others forever.
        assert_eq!(table.blocks(&requests[0], at(4_000)), None);
    }

    #[test]
    fn the_table_is_stored_and_read_again() {
        let mut table = BackOff::default();
        table.refused(&request("eastus", "D8"), &trouble("AllocationFailed", ""), at(0));
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<BackOff>(&text).unwrap(), table);
        table.prune(at(100_000));
        assert_eq!(table, BackOff::default());
    }
}
