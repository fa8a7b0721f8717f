//! Rules that determine the behaviour of VMs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Boot;

/// One rule: VMs that match `when` behave as `boot` defines, or are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The name of the rule, for the log.
    pub name: String,
    /// The VMs that the rule applies to; all VMs when empty.
    #[serde(default)]
    pub when: When,
    /// The behaviour of these VMs.
    #[serde(default)]
    pub boot: Boot,
    /// Azure refuses the VM instead.
    #[serde(default)]
    pub refuse: Option<Refusal>,
}

/// Conditions on a VM; all given conditions must match.
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
    /// Tags that the VM must have, with these values.
    pub tags: BTreeMap<String, String>,
    /// Applies only to this many of the VMs that match the other conditions.
    pub first: Option<u32>,
    /// Skips this many of the VMs that match the other conditions.
    pub after: Option<u32>,
    /// The share of the VMs that match the other conditions, between 0 and 1.
    pub probability: Option<f64>,
}

/// An error that Azure returns instead of accepting the VM.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The HTTP status; when absent, the PUT is accepted and its operation fails.
    #[serde(default)]
    pub status: Option<u16>,
    /// The error code.
    pub code: String,
    /// The error message.
    pub message: String,
    /// The error target.
    #[serde(default)]
    pub target: Option<String>,
}

/// The properties of a VM that rules match on.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The VM's name.
    pub name: &'a str,
    /// The version of the image.
    pub image_version: Option<&'a str>,
    /// The VM size.
    pub size: &'a str,
    /// The region.
    pub region: &'a str,
    /// The tags of the VM.
    pub tags: &'a Value,
}

impl When {
    /// Whether all conditions but the counts and the probability match.
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

    /// Whether the rule applies to the `nth` (from 0) VM that matches, where `chance` is between 0
    /// and 1.
    pub fn chosen(&self, nth: u32, chance: f64) -> bool {
        self.first.is_none_or(|first| nth < first)
            && self.after.is_none_or(|after| nth >= after)
            && self.probability.is_none_or(|probability| chance < probability)
    }
}
