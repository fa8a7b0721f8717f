//! Which VM does what.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Boot;

/// One rule: VMs that fit `when` do what `boot` says, or are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// What the rule is about, for the log.
    pub name: String,
    /// Which VMs it is for; all of them when empty.
    #[serde(default)]
    pub when: When,
    /// What such a VM does.
    #[serde(default)]
    pub boot: Boot,
    /// Azure refuses the VM instead.
    #[serde(default)]
    pub refuse: Option<Refusal>,
}

/// Conditions on a VM; all that are given must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// The image's version, such as `202601.27.0`.
    pub image_version: Option<String>,
    /// The VM size.
    pub size: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The beginning of the VM's name.
    pub name_prefix: Option<String>,
    /// Tags that must be there with these values.
    pub tags: BTreeMap<String, String>,
    /// Only the first so many VMs that fit the rest.
    pub first: Option<u32>,
    /// Not the first so many VMs that fit the rest.
    pub after: Option<u32>,
    /// This share of the VMs that fit the rest, between 0 and 1.
    pub probability: Option<f64>,
}

/// An answer that Azure gives instead of accepting the VM.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The HTTP status; absent: the PUT is accepted and its operation fails.
    #[serde(default)]
    pub status: Option<u16>,
    /// The error's code.
    pub code: String,
    /// The error's text.
    pub message: String,
    /// What the error points at.
    #[serde(default)]
    pub target: Option<String>,
}

/// What a rule looks at.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The VM's name.
    pub name: &'a str,
    /// Its image's version.
    pub image_version: Option<&'a str>,
    /// Its size.
    pub size: &'a str,
    /// Its region.
    pub region: &'a str,
    /// Its tags.
    pub tags: &'a Value,
}

impl When {
    /// Whether everything but the counts and the dice fits.
    pub fn fits(&self, subject: &Subject<'_>) -> bool {
        let same = |wanted: &Option<String>, is: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(is))
        };
        same(&self.image_version, subject.image_version.unwrap_or_default())
            && same(&self.size, subject.size)
            && same(&self.region, subject.region)
            && self.name_prefix.as_deref().is_none_or(|prefix| subject.name.starts_with(prefix))
            && self.tags.iter().all(|(key, value)| subject.tags[key.as_str()] == value.as_str())
    }

    /// Whether the VM that is the `nth` (from 0) to fit, with `chance` between 0 and 1, is meant.
    pub fn chosen(&self, nth: u32, chance: f64) -> bool {
        self.first.is_none_or(|first| nth < first)
            && self.after.is_none_or(|after| nth >= after)
            && self.probability.is_none_or(|probability| chance < probability)
    }
}
