//! What is not asked for again yet, because Azure has said no.

use std::collections::BTreeMap;

use bringup_contract::Cause;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::class::CapacityType;
use crate::trouble::{Scope, Trouble};

/// The first pause of a hunter.
const HUNT: SignedDuration = SignedDuration::from_mins(2);
/// His longest.
const LONGEST_HUNT: SignedDuration = SignedDuration::from_mins(30);

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

/// A no that still holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Until when nobody asks.
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
}

/// All that is not asked for again yet. It is stored, and so survives a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackOff(BTreeMap<String, Entry>);

impl BackOff {
    /// Notes a no.
    pub fn note(&mut self, wish: &Wish<'_>, trouble: &Trouble, hunting: bool, now: Timestamp) {
        let Some((scope, time)) = trouble.back_off else { return };
        let key = wish.key(scope);
        let times = self.0.get(&key).map_or(0, |entry| entry.times) + 1;
        let scarce = matches!(
            trouble.cause,
            Cause::QuotaExceeded | Cause::AllocationFailed | Cause::SkuUnavailable
        );
        // A hunter keeps asking, ever more seldom.
        let time = if hunting && scarce {
            (HUNT * (1 << (times - 1).min(4))).min(LONGEST_HUNT)
        } else {
            time
        };
        let entry = Entry {
            until: now + time,
            last: now,
            cause: trouble.cause.reason().to_owned(),
            code: trouble.code.clone(),
            times,
        };
        self.0.insert(key, entry);
    }

    /// A yes: whatever was said before of exactly this holds no longer.
    pub fn granted(&mut self, wish: &Wish<'_>) {
        for scope in wish.scopes() {
            self.0.remove(&wish.key(scope));
        }
    }

    /// The no that keeps this from being asked for now: the one that holds longest.
    pub fn keeps(&self, wish: &Wish<'_>, now: Timestamp) -> Option<&Entry> {
        let entries = wish.scopes().filter_map(|scope| self.0.get(&wish.key(scope)));
        entries.filter(|entry| entry.until > now).max_by_key(|entry| entry.until)
    }

    /// Drops what has not mattered for a day.
    pub fn tidy(&mut self, now: Timestamp) {
        self.0.retain(|_, entry| entry.until + SignedDuration::from_hours(24) > now);
    }

    /// Everything, for people.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(key, entry)| (key.as_str(), entry))
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
        table.note(&here, &trouble("AllocationFailed", ""), false, at(0));
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
            false,
            at(0),
        );
        assert!(table.keeps(&wish("eastus", "D4"), at(1)).is_some());
        let other = Wish { family: "standardNDSv5Family", ..wish("eastus", "ND") };
        assert_eq!(table.keeps(&other, at(1)), None);
        table.note(
            &wish("eastus", "D8"),
            &trouble("OperationNotAllowed", "approved Total Regional Cores quota"),
            false,
            at(0),
        );
        assert!(table.keeps(&other, at(1)).is_some());
        table.granted(&other);
        assert_eq!(table.keeps(&other, at(1)), None);
    }

    #[test]
    fn a_hunter_asks_ever_more_seldom_and_at_least_each_half_hour() {
        let mut table = BackOff::default();
        let here = wish("eastus", "D8");
        let mut pauses = Vec::new();
        for _ in 0..6 {
            table.note(&here, &trouble("SkuNotAvailable", ""), true, at(0));
            let entry = table.keeps(&here, at(0)).unwrap();
            pauses.push(at(0).duration_until(entry.until).as_secs() / 60);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30]);
        table.granted(&here);
        table.note(&here, &trouble("SkuNotAvailable", ""), true, at(0));
        assert_eq!(table.keeps(&here, at(0)).map(|entry| entry.times), Some(1));
    }

    #[test]
    fn the_table_is_stored_and_read_again() {
        let mut table = BackOff::default();
        table.note(&wish("eastus", "D8"), &trouble("AllocationFailed", ""), false, at(0));
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<BackOff>(&text).unwrap(), table);
        table.tidy(at(100_000));
        assert_eq!(table, BackOff::default());
    }
}
