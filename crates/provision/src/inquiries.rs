//! Reads of Azure before a machine is created: whether a class can be used, the latest version of an
//! image, the quotas of a region.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bringup_azure::clock::Clock;
use bringup_azure::id::Name;
use bringup_azure::{Arm, ArmError, Priority, ResourceId};
use bringup_flex::class::{CapacityType, Class, FieldError};
use bringup_flex::engine::NETWORK;
use bringup_flex::sizes::Size;
use bringup_flex::time::later;
use bringup_flex::trouble::{Class as TroubleClass, Trouble};
use bringup_objects::flex::machine::Image;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How long an answer from Azure is cached.
const IMAGES: SignedDuration = SignedDuration::from_mins(10);
const QUOTAS: SignedDuration = SignedDuration::from_mins(1);

/// Whether a class can be used, according to Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The class can be used.
    Usable,
    /// A field of the class names a resource that does not exist or does not fit.
    Wrong(FieldError),
    /// Azure denied access.
    Denied(Trouble),
    /// Azure did not answer.
    Unanswered(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quota {
    /// The name of the quota: a family, `cores` or `lowPriorityCores`.
    pub name: String,
    /// The limit on vCPUs.
    pub limit: i64,
    /// The number of vCPUs in use.
    pub used: i64,
}

type Cache<T> = Mutex<HashMap<String, (Timestamp, T)>>;

/// Reads Azure, with a cache.
#[derive(Clone)]
pub(super) struct Inquiries {
    arm: Arm,
    clock: Arc<dyn Clock>,
    images: Arc<Cache<String>>,
    quotas: Arc<Cache<Vec<Quota>>>,
}

impl Inquiries {
    pub(super) fn new(arm: Arm, clock: Arc<dyn Clock>) -> Self {
        Self { arm, clock, images: Arc::default(), quotas: Arc::default() }
    }

    /// Whether a class can be used: its resource group and subnet exist, in its region.
    pub(super) async fn class(&self, class: &Class) -> Found {
        let parsed = (class.subscription.parse::<Name>(), class.resource_group.parse::<Name>());
        let (Ok(subscription), Ok(group)) = parsed else {
            return wrong("resourceGroup", "it is not a name of a resource group");
        };
        let found = self.arm.resource_group(&subscription, &group, Priority::Schedule).await;
        if let Err(error) = found {
            return refused("resourceGroup", &error);
        }
        let Ok(subnet) = class.subnet.parse::<ResourceId>() else {
            return wrong("subnetID", "it is not the id of a subnet");
        };
        if let Err(error) = self.arm.resource(&subnet, NETWORK, Priority::Schedule).await {
            return refused("subnetID", &error);
        }
        let network = class.subnet.to_ascii_lowercase();
        let end = network.rfind("/subnets/").unwrap_or(class.subnet.len());
        let Ok(network) = class.subnet[..end].parse::<ResourceId>() else {
            return wrong("subnetID", "it is not the id of a subnet");
        };
        match self.arm.resource(&network, NETWORK, Priority::Schedule).await {
            Ok(network) => {
                let region = network["location"].as_str().unwrap_or_default();
                let region = region.replace(' ', "").to_ascii_lowercase();
                if region.is_empty() || region == class.location {
                    Found::Usable
                } else {
                    let what = format!("it is in {region}, and location is {}", class.location);
                    wrong("subnetID", &what)
                }
            }
            Err(error) => refused("subnetID", &error),
        }
    }

    /// The image of a class, with `latest` replaced by the version that is latest now.
    pub(super) async fn resolved(&self, class: &Class) -> Result<Image, Trouble> {
        let Image::Marketplace { publisher, offer, sku, version } = &class.image else {
            return Ok(class.image.clone());
        };
        if !version.eq_ignore_ascii_case("latest") {
            return Ok(class.image.clone());
        }
        let with = |version: String| Image::Marketplace {
            publisher: publisher.clone(),
            offer: offer.clone(),
            sku: sku.clone(),
            version,
        };
        let key = [&class.subscription, &class.location, publisher, offer, sku].map(String::as_str);
        let key = key.join("/").to_ascii_lowercase();
        let now = self.clock.now();
        if let Some(version) = cached(&self.images, &key, now) {
            return Ok(with(version));
        }
        let names: Result<Vec<Name>, _> =
            [&class.subscription, &class.location, publisher, offer, sku]
                .iter()
                .map(|text| text.parse::<Name>())
                .collect();
        let names = names.map_err(|error| Trouble::request(&format!("imageReference: {error}")))?;
        let [subscription, region, publisher, offer, sku] = names.as_slice() else {
            return Err(Trouble::request("imageReference: it is incomplete"));
        };
        let image = [publisher, offer, sku];
        let versions =
            self.arm.image_versions(subscription, region, image, Priority::Schedule).await;
        let versions = versions.map_err(|error| {
            if error.is_not_found() {
                Trouble::request(&format!("imageReference: {error}"))
            } else {
                Trouble::of_error(&error, false)
            }
        })?;
        let Some(version) = versions.into_iter().next() else {
            let what = format!("imageReference: it has no version in {region}");
            return Err(Trouble::request(&what));
        };
        cache(&self.images, key, later(now, IMAGES), version.clone());
        Ok(with(version))
    }

    /// The quotas of a region; none if Azure does not answer.
    pub(super) async fn quotas(&self, subscription: &str, region: &str) -> Vec<Quota> {
        let key = format!("{subscription}/{region}");
        let now = self.clock.now();
        if let Some(quotas) = cached(&self.quotas, &key, now) {
            return quotas;
        }
        let (Ok(subscription), Ok(region)) = (subscription.parse::<Name>(), region.parse::<Name>())
        else {
            return Vec::new();
        };
        let found = self.arm.usages(&subscription, &region, Priority::Schedule).await;
        let quotas: Vec<Quota> = found.iter().flatten().filter_map(quota).collect();
        cache(&self.quotas, key, later(now, QUOTAS), quotas.clone());
        quotas
    }
}

/// The quota that is too small for another VM of a size.
pub(super) fn exhausted_quota<'a>(
    quotas: &'a [Quota],
    size: &Size,
    capacity_type: CapacityType,
) -> Option<&'a Quota> {
    let counts = |quota: &&Quota| match (capacity_type, quota.name.to_ascii_lowercase().as_str()) {
        (CapacityType::Spot, name) => name == "lowprioritycores",
        (CapacityType::OnDemand, "cores") => true,
        (CapacityType::OnDemand, name) => name.eq_ignore_ascii_case(size.family),
    };
    quotas
        .iter()
        .filter(counts)
        .find(|quota| quota.used.saturating_add(i64::from(size.cpus)) > quota.limit)
}

fn quota(value: &Value) -> Option<Quota> {
    Some(Quota {
        name: value.pointer("/name/value")?.as_str()?.to_owned(),
        limit: value["limit"].as_i64()?,
        used: value["currentValue"].as_i64()?,
    })
}

fn cached<T: Clone>(all: &Cache<T>, key: &str, now: Timestamp) -> Option<T> {
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(key).filter(|(until, _)| *until > now).map(|(_, value)| value.clone())
}

fn cache<T>(all: &Cache<T>, key: String, until: Timestamp, value: T) {
    all.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (until, value));
}

fn wrong(field: &'static str, what: &str) -> Found {
    Found::Wrong(FieldError { field, what: what.to_owned() })
}

fn refused(field: &'static str, error: &ArmError) -> Found {
    if error.is_not_found() {
        return wrong(field, "it does not exist");
    }
    let trouble = Trouble::of_error(error, false);
    match trouble.class {
        TroubleClass::Access => Found::Denied(trouble),
        TroubleClass::Request => wrong(field, &trouble.message),
        _ => Found::Unanswered(trouble.message),
    }
}

#[cfg(test)]
mod tests {
    use bringup_flex::sizes;

    use super::*;

    #[test]
    fn an_exhausted_quota_is_found_by_family_region_and_spot() {
        let quota = |name: &str, limit, used| Quota { name: name.to_owned(), limit, used };
        let size = sizes::find("Standard_D8s_v5").unwrap();
        let (demand, spot) = (CapacityType::OnDemand, CapacityType::Spot);
        let room = [quota("standardDSv5Family", 16, 8), quota("cores", 100, 0)];
        assert_eq!(exhausted_quota(&room, size, demand), None);
        let none = [quota("StandardDSv5Family", 15, 8)];
        assert_eq!(exhausted_quota(&none, size, demand), Some(&none[0]), "in any case");
        assert_eq!(exhausted_quota(&none, size, spot), None);
        let region = [quota("cores", 7, 0)];
        assert!(exhausted_quota(&region, size, demand).is_some());
        assert!(exhausted_quota(&[quota("lowPriorityCores", 0, 0)], size, spot).is_some());
        assert_eq!(exhausted_quota(&[quota("standardNDSFamily", 0, 0)], size, demand), None);
    }
}
