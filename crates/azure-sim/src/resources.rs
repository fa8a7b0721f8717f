//! The resources, one kind per file, and their shared functions.

pub(crate) mod disk;
pub(crate) mod extension;
pub(crate) mod extension_run;
pub(crate) mod image;
pub(crate) mod machine;
pub(crate) mod nic;
pub(crate) mod public_ip;
pub(crate) mod restart;
pub(crate) mod run_command;
pub(crate) mod scale_set;
pub(crate) mod subnet;
pub(crate) mod vm;
pub(crate) mod vm_create;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply};
use crate::route::{Id, Key, Scope};

/// A deleted resource that reads still return for a while.
#[derive(Debug)]
pub(crate) struct Tombstone {
    id: Id,
    deleted: Timestamp,
    body: Value,
}

/// The number of items in a page of a list.
const PAGE: usize = 100;

impl Azure {
    /// Stores the last body of a deleted resource for delayed reads.
    pub(crate) fn bury(&mut self, id: &Id, mut body: Value) {
        body["properties"]["provisioningState"] = "Deleting".into();
        self.tombstones.insert(id.key(), Tombstone { id: id.clone(), deleted: self.now, body });
    }

    /// Whether a resource that was created at this time is visible to reads that are `lag` behind.
    pub(crate) fn shows(&self, created: Timestamp, lag: Duration) -> bool {
        self.now >= later(created, lag)
    }

    /// The answer for a resource that does not exist: its tombstone, or 404.
    pub(crate) fn missing(&self, id: &Id) -> Result<Reply, ArmError> {
        let lag = self.scenario.quirks.shown_after_delete.0;
        match self.tombstones.get(&id.key()) {
            Some(tombstone) if self.now < later(tombstone.deleted, lag) => {
                Ok(Reply::json(200, tombstone.body.clone()))
            }
            _ => Err(not_found(id)),
        }
    }

    /// One page of a list: resources that are visible, including those deleted too recently to be
    /// hidden.
    pub(crate) fn page<'a>(
        &self,
        call: &Call<'_>,
        scope: &Scope,
        kind: &str,
        living: impl Iterator<Item = (&'a Id, Timestamp, Value)>,
    ) -> Reply {
        let lag = self.scenario.quirks.lists_lag.0;
        let mut items: BTreeMap<Key, Value> = living
            .filter(|(id, created, _)| scope.holds(id) && self.shows(*created, lag))
            .map(|(id, _, body)| (id.key(), body))
            .collect();
        for (key, tombstone) in &self.tombstones {
            let of_kind = tombstone.id.tail.to_ascii_lowercase().starts_with(kind);
            if of_kind && scope.holds(&tombstone.id) && self.now < later(tombstone.deleted, lag) {
                items.entry(key.clone()).or_insert_with(|| tombstone.body.clone());
            }
        }
        let skip: usize =
            call.query("$skiptoken").and_then(|token| token.parse().ok()).unwrap_or(0);
        let next = (skip + PAGE < items.len()).then(|| {
            let separator = if call.path_and_query.contains('?') { '&' } else { '?' };
            let asked = call.path_and_query.split("&$skiptoken=").next().unwrap_or_default();
            format!("{}{asked}{separator}$skiptoken={}", call.base, skip + PAGE)
        });
        Reply::list(items.into_values().skip(skip).take(PAGE).collect(), next)
    }

    /// Draws a duration, mostly between the two bounds.
    pub(crate) fn lasts(&self, what: &str, low: f64, high: f64) -> Duration {
        self.seed.of(what).around(low, high)
    }
}

/// `404`, as the ARM front door words it.
pub(crate) fn not_found(id: &Id) -> ArmError {
    let message = format!(
        "The Resource '{}' under resource group '{}' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
        id.tail, id.group
    );
    ArmError::new(404, "ResourceNotFound", message).at_gateway()
}

pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

/// The tags of a body as a map of strings.
pub(crate) fn tag_map(tags: &Value) -> BTreeMap<String, String> {
    tags.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Removes secret fields from the object at `pointer`. Azure never returns them.
pub(crate) fn withhold(body: &mut Value, pointer: &str, secrets: &[&str]) {
    if let Some(object) = body.pointer_mut(pointer).and_then(Value::as_object_mut) {
        for secret in secrets {
            object.shift_remove(*secret);
        }
    }
}

pub(crate) fn text<'a>(body: &'a Value, pointer: &str) -> Option<&'a str> {
    body.pointer(pointer).and_then(Value::as_str)
}

/// The `location` of a body, in the short form.
pub(crate) fn location(body: &Value) -> Result<String, ArmError> {
    text(body, "/location")
        .map(|location| location.to_ascii_lowercase().replace(' ', ""))
        .ok_or_else(|| {
            ArmError::new(
                400,
                "LocationRequired",
                "The location property is required for this definition.",
            )
        })
}
