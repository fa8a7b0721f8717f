//! What is not asked for again yet, because Azure has said no.

use std::collections::BTreeMap;

use bringup_contract::Cause;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::class::CapacityType;
use crate::time::later;
use crate::trouble::{Scope, Trouble};

/// The first pause of a hunter.
const HUNT: SignedDuration = SignedDuration::from_mins(2);
/// The longest pause of a hunter.
const LONGEST_HUNT: SignedDuration = SignedDuration::from_mins(30);
/// What was refused before is asked for at most so often in a minute, all together.
const MOST_A_MINUTE: usize = 2;
/// An attempt is answered within this time, or counts as lost.
const ANSWERED: SignedDuration = SignedDuration::from_mins(5);

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The subscription.
    pub subscription: &'a str,
    /// The region.
    pub region: &'a str,
    /// The size.
    pub size: &'a str,
    /// Its family.
    pub family: &'a str,
    /// Spot or not.
    pub capacity_type: CapacityType,
    /// The zone, if one was asked for.
    pub zone: Option<&'a str>,
    /// The class.
    pub class: &'a str,
    /// At most so many attempts an hour, where scarce capacity is hunted for.
    pub hunting: Option<u32>,
}

impl Wish<'_> {
    /// The key of a scope of it: what is refused in one region says nothing of another.
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

/// A no of Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// No request is sent before this time.
    pub until: Timestamp,
    /// When it was said.
    pub last: Timestamp,
    /// Why.
    pub cause: String,
    /// Azure's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How often in a row.
    pub times: u32,
    /// Since when a new attempt is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<Timestamp>,
}

/// An attempt to get what was refused before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Attempt {
    at: Timestamp,
    class: String,
}

/// All that is not asked for again yet. It is stored, and so survives a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackOff {
    refusals: BTreeMap<String, Entry>,
    attempts: Vec<Attempt>,
}

/// The pause of a hunter after so many refusals.
pub fn hunting_pause(times: u32) -> SignedDuration {
    (HUNT * (1 << times.saturating_sub(1).min(4))).min(LONGEST_HUNT)
}

impl BackOff {
    /// Notes a no.
    pub fn note(&mut self, wish: &Wish<'_>, trouble: &Trouble, now: Timestamp) {
        let Some((scope, time)) = trouble.back_off else { return };
        let key = wish.key(scope);
        let known = self.refusals.get(&key);
        // Callers that asked at the same time get the same refusal: it counts once.
        let is_echo = known.is_some_and(|entry| entry.until > now && entry.asking.is_none());
        let times = known.map_or(0, |entry| entry.times).saturating_add(u32::from(!is_echo));
        let scarce = matches!(
            trouble.cause,
            Cause::QuotaExceeded | Cause::AllocationFailed | Cause::SkuUnavailable
        );
        // A hunter keeps asking, ever more seldom.
        let time = if wish.hunting.is_some() && scarce { hunting_pause(times) } else { time };
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

    /// A yes: whatever was said before of exactly this holds no longer. Whether anything did.
    pub fn granted(&mut self, wish: &Wish<'_>) -> bool {
        let before = self.refusals.len();
        for scope in wish.scopes() {
            self.refusals.remove(&wish.key(scope));
        }
        self.refusals.len() < before
    }

    /// What keeps this from being requested now: the refusal that holds longest; or, where a
    /// refusal has expired, another attempt that is under way, or too many recent attempts.
    pub fn keeps(&self, wish: &Wish<'_>, now: Timestamp) -> Option<&Entry> {
        let known = || wish.scopes().filter_map(|scope| self.refusals.get(&wish.key(scope)));
        let holds = known().filter(|entry| entry.until > now).max_by_key(|entry| entry.until);
        let crowded = self.is_crowded(wish, now);
        holds.or_else(|| known().find(|entry| crowded || entry.is_asked_for(now)))
    }

    /// Whether what was refused before has been asked for too often, by all or by this class.
    fn is_crowded(&self, wish: &Wish<'_>, now: Timestamp) -> bool {
        let since = |time| self.attempts.iter().filter(move |one| later(one.at, time) > now);
        let hour = since(SignedDuration::from_hours(1)).filter(|one| one.class == wish.class);
        since(SignedDuration::from_mins(1)).count() >= MOST_A_MINUTE
            || wish.hunting.is_some_and(|most| hour.count() >= most as usize)
    }

    /// Notes that what was refused before is asked for again. Whether it was.
    pub fn asked(&mut self, wish: &Wish<'_>, now: Timestamp) -> bool {
        let mut again = false;
        for scope in wish.scopes() {
            if let Some(entry) = self.refusals.get_mut(&wish.key(scope)) {
                entry.asking = Some(now);
                again = true;
            }
        }
        if again {
            self.attempts.retain(|one| later(one.at, SignedDuration::from_hours(1)) > now);
            self.attempts.push(Attempt { at: now, class: wish.class.to_owned() });
        }
        again
    }

    /// Drops what has not mattered for a day.
    pub fn tidy(&mut self, now: Timestamp) {
        self.refusals.retain(|_, entry| later(entry.until, SignedDuration::from_hours(24)) > now);
    }

    /// Everything, for people.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.refusals.iter().map(|(key, entry)| (key.as_str(), entry))
    }
}

impl Entry {
    /// Whether an attempt is under way and not answered yet.
    fn is_asked_for(&self, now: Timestamp) -> bool {
        self.asking.is_some_and(|since| later(since, ANSWERED) > now)
    }
}

#[cfg(test)]
mod tests {
    use bringup_azure::error::ArmFailure;

    use super::*;

    fn wish<'a>(region: &'a str, size: &'a str) -> Wish<'a> {
        Wish {
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
    fn case_42_a_no_holds_for_its_region_and_size_and_for_nobody_else() {
        let mut table = BackOff::default();
        let (here, there) = (wish("eastus", "D8"), wish("westus", "D8"));
        table.note(&here, &trouble("AllocationFailed", ""), at(0));
        assert_eq!(
            table.keeps(&here, at(1)).map(|entry| entry.cause.as_str()),
            Some("AllocationFailed")
        );
        assert_eq!(table.keeps(&there, at(1)), None);
        assert_eq!(table.keeps(&wish("eastus", "D4"), at(1)), None);
        let spot = Wish { capacity_type: CapacityType::Spot, ..here };
        assert_eq!(table.keeps(&spot, at(1)), None);
        assert_eq!(table.keeps(&here, at(3_600)), None);
    }

    #[test]
    fn case_42_a_quota_of_a_family_or_a_region_holds_for_all_of_it() {
        let mut table = BackOff::default();
        table.note(
            &wish("eastus", "D8"),
            &trouble(
                "OperationNotAllowed",
                "exceeding approved standardDSv5Family Cores quota. Current Limit: 10,",
            ),
            at(0),
        );
        assert!(table.keeps(&wish("eastus", "D4"), at(1)).is_some());
        let other = Wish { family: "standardNDSv5Family", ..wish("eastus", "ND") };
        assert_eq!(table.keeps(&other, at(1)), None);
        table.note(
            &wish("eastus", "D8"),
            &trouble("OperationNotAllowed", "approved Total Regional Cores quota"),
            at(0),
        );
        assert!(table.keeps(&other, at(1)).is_some());
        table.granted(&other);
        assert_eq!(table.keeps(&other, at(1)), None);
    }

    #[test]
    fn a_hunter_asks_ever_more_seldom_and_at_least_each_half_hour() {
        let mut table = BackOff::default();
        let here = Wish { hunting: Some(60), ..wish("eastus", "D8") };
        let mut pauses = Vec::new();
        for _ in 0..6 {
            table.asked(&here, at(0));
            table.note(&here, &trouble("SkuNotAvailable", ""), at(0));
            let entry = table.keeps(&here, at(0)).unwrap();
            pauses.push(at(0).duration_until(entry.until).as_secs() / 60);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30]);
        table.granted(&here);
        table.note(&here, &trouble("SkuNotAvailable", ""), at(0));
        assert_eq!(table.keeps(&here, at(0)).map(|entry| entry.times), Some(1));
    }

    #[test]
    fn many_who_asked_at_once_are_refused_once() {
        let mut table = BackOff::default();
        let here = Wish { hunting: Some(60), ..wish("eastus", "D8") };
        for second in 0..5 {
            table.note(&here, &trouble("SkuNotAvailable", ""), at(second));
        }
        assert_eq!(table.keeps(&here, at(5)).map(|entry| entry.times), Some(1));
    }

    #[test]
    fn only_one_asks_again_and_not_more_than_two_in_a_minute_or_the_classs_number_in_an_hour() {
        let mut table = BackOff::default();
        let wishes = ["a", "b", "c"].map(|region| Wish { hunting: Some(3), ..wish(region, "D8") });
        for wish in &wishes {
            table.note(wish, &trouble("SkuNotAvailable", ""), at(0));
            assert!(table.keeps(wish, at(119)).is_some());
            assert_eq!(table.keeps(wish, at(120)), None, "the first pause is over");
        }
        assert!(table.asked(&wishes[0], at(120)));
        assert!(table.keeps(&wishes[0], at(121)).is_some(), "somebody asks");
        assert_eq!(table.keeps(&wishes[1], at(121)), None, "of another region nobody has asked");
        assert!(table.asked(&wishes[1], at(121)));
        assert!(table.keeps(&wishes[2], at(122)).is_some(), "two in a minute are enough");
        assert_eq!(table.keeps(&wishes[2], at(181)), None);
        assert!(table.asked(&wishes[2], at(181)));
        let other = Wish { hunting: Some(3), ..wish("d", "D8") };
        table.note(&other, &trouble("SkuNotAvailable", ""), at(181));
        assert!(table.keeps(&other, at(1_000)).is_some(), "three in an hour are the class's limit");
        assert_eq!(table.keeps(&other, at(4_000)), None);
        let new = wish("e", "D8");
        assert!(!table.asked(&new, at(4_000)), "what was never refused is not asked for again");
        // An attempt that was never answered does not block others for ever.
        assert_eq!(table.keeps(&wishes[0], at(4_000)), None);
    }

    #[test]
    fn the_table_is_stored_and_read_again() {
        let mut table = BackOff::default();
        table.note(&wish("eastus", "D8"), &trouble("AllocationFailed", ""), at(0));
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<BackOff>(&text).unwrap(), table);
        table.tidy(at(100_000));
        assert_eq!(table, BackOff::default());
    }
}
