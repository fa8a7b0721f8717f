//! Offers: the sizes that a class can create. A claim gets the cheapest one that fits and is available.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::backoff::{BackOff, VmRequest};
use crate::class::{CapacityType, Class};
use crate::requirements::{Requirement, fit};
use crate::sizes::{SIZES, Size};

/// The assumed price of a spot VM relative to the list price. Used only to order offers.
const SPOT: f64 = 0.3;

/// The resources that the pods of a claim need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// CPU in thousandths.
    pub cpu: u64,
    /// Memory in MiB.
    pub memory: u64,
    /// Ephemeral storage in MiB.
    pub storage: u64,
    /// The number of GPUs.
    pub gpus: u64,
    /// The number of pods.
    pub pods: u64,
}

/// A size in a zone, available now or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The VM size.
    pub size: &'static Size,
    /// The zone; none: Azure chooses a zone in the region.
    pub zone: Option<String>,
    /// The capacity type.
    pub capacity_type: CapacityType,
    /// The price of an hour in dollars. Used only to order offers.
    pub price: f64,
    /// Whether the size can be requested now.
    pub available: bool,
}

/// Why no size was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoOffer {
    /// No size is large enough and meets the requirements.
    #[error("no size fits the requirements of the claim")]
    NothingFits,
    /// Sizes would fit, but none is available: how many would fit, and why.
    #[error("Azure has refused every size that fits ({0}): {1}")]
    AllRefused(usize, String),
}

/// The labels of a node on an offer.
pub fn labels(class: &Class, offer: &Offer) -> BTreeMap<&'static str, String> {
    let size = offer.size;
    let zone = offer.zone.as_ref().map(|zone| format!("{}-{zone}", class.location));
    let mut labels = BTreeMap::from([
        ("node.kubernetes.io/instance-type", size.name.to_owned()),
        ("topology.kubernetes.io/region", class.location.clone()),
        // If Azure chooses the zone, the label has the region as its value.
        ("topology.kubernetes.io/zone", zone.unwrap_or_else(|| class.location.clone())),
        ("kubernetes.io/os", "linux".to_owned()),
        ("kubernetes.io/arch", "amd64".to_owned()),
        ("karpenter.sh/capacity-type", offer.capacity_type.word().to_owned()),
        ("karpenter.azure.com/sku-cpu", size.cpus.to_string()),
        ("karpenter.azure.com/sku-memory", (size.memory * 1024).to_string()),
        ("kubernetes.azure.com/sku-cpu", size.cpus.to_string()),
        ("kubernetes.azure.com/sku-memory", (size.memory * 1024).to_string()),
    ]);
    if size.gpus > 0 {
        labels.insert("karpenter.azure.com/sku-gpu-count", size.gpus.to_string());
    }
    labels
}

/// The request for a VM of a class in this size.
pub fn vm_request<'a>(
    class: &'a Class,
    name: &'a str,
    size: &'a Size,
    zone: Option<&'a str>,
) -> VmRequest<'a> {
    VmRequest {
        subscription: &class.subscription,
        region: &class.location,
        size: size.name,
        family: size.family,
        capacity_type: class.capacity_type,
        zone,
        class: name,
        hunting: class.hunting,
    }
}

/// All offers of a class, available or not.
pub fn offers(class: &Class, name: &str, back_off: &BackOff, now: Timestamp) -> Vec<Offer> {
    let zones: Vec<Option<&String>> = match class.zones.as_slice() {
        [] => vec![None],
        zones => zones.iter().map(Some).collect(),
    };
    let factor = if class.capacity_type == CapacityType::Spot { SPOT } else { 1.0 };
    let mut offers: Vec<Offer> = SIZES
        .iter()
        .flat_map(|size| zones.iter().map(move |zone| (size, *zone)))
        .map(|(size, zone)| {
            let request = vm_request(class, name, size, zone.map(String::as_str));
            Offer {
                size,
                zone: zone.cloned(),
                capacity_type: class.capacity_type,
                price: size.price * factor,
                available: back_off.blocks(&request, now).is_none(),
            }
        })
        .collect();
    offers.sort_by(|left, right| {
        left.price.total_cmp(&right.price).then_with(|| left.zone.cmp(&right.zone))
    });
    offers
}

/// The cheapest offer that fits and is available.
pub fn choose(
    class: &Class,
    offers: &[Offer],
    requirements: &[Requirement],
    needs: Needs,
) -> Result<Offer, NoOffer> {
    let enough = |size: &Size| {
        size.allocatable_cpu() >= needs.cpu
            && size.allocatable_memory() >= needs.memory
            && u64::try_from(class.os_disk).is_ok_and(|disk| disk * 1024 >= needs.storage)
            && u64::from(size.gpus) >= needs.gpus
            && u64::try_from(class.max_pods).is_ok_and(|most| most >= needs.pods)
    };
    let fitting: Vec<&Offer> = offers
        .iter()
        .filter(|offer| enough(offer.size) && fit(requirements, &labels(class, offer)))
        .collect();
    if fitting.is_empty() {
        return Err(NoOffer::NothingFits);
    }
    let chosen = fitting.iter().find(|offer| offer.available).map(|offer| (*offer).clone());
    chosen.ok_or_else(|| {
        let names: Vec<&str> = fitting.iter().map(|offer| offer.size.name).collect();
        NoOffer::AllRefused(fitting.len(), names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use bringup_azure::error::ArmFailure;

    use super::*;
    use crate::class::tests::spec;
    use crate::trouble::Trouble;

    fn class() -> Class {
        Class::of(&spec()).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn chosen(
        requirements: &[(&str, &str, &[&str])],
        needs: Needs,
        refused: &BackOff,
    ) -> Result<&'static str, NoOffer> {
        let requirements: Vec<Requirement> = requirements
            .iter()
            .map(|(key, operator, values)| {
                let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
                Requirement::read(key, operator, &values).unwrap()
            })
            .collect();
        let class = class();
        choose(&class, &offers(&class, "default", refused, now()), &requirements, needs)
            .map(|offer| offer.size.name)
    }

    #[test]
    fn case_44_a_small_pod_gets_the_cheapest_size_and_not_the_first() {
        let none = BackOff::default();
        let one_core = Needs { cpu: 1000, memory: 2048, ..Needs::default() };
        assert_eq!(chosen(&[], one_core, &none), Ok("Standard_D8s_v5"));
        let one_gpu = Needs { gpus: 1, ..one_core };
        assert_eq!(chosen(&[], one_gpu, &none), Ok("Standard_NC24ads_A100_v4"));
        let eight = Needs { gpus: 8, ..one_core };
        assert_eq!(chosen(&[], eight, &none), Ok("Standard_ND96amsr_A100_v4"));
        assert_eq!(chosen(&[], Needs { gpus: 9, ..one_core }, &none), Err(NoOffer::NothingFits));
        let large = Needs { memory: 40 * 1024, ..one_core };
        assert_eq!(chosen(&[], large, &none), Ok("Standard_NC24ads_A100_v4"));
    }

    #[test]
    fn case_44_requirements_are_honoured() {
        let none = BackOff::default();
        let small = Needs::default();
        let kind = "node.kubernetes.io/instance-type";
        assert_eq!(
            chosen(&[(kind, "NotIn", &["Standard_D8s_v5"])], small, &none),
            Ok("Standard_NC24ads_A100_v4")
        );
        assert_eq!(
            chosen(&[("karpenter.azure.com/sku-cpu", "Gt", &["40"])], small, &none),
            Ok("Standard_ND96amsr_A100_v4")
        );
        assert_eq!(
            chosen(&[("karpenter.azure.com/sku-gpu-count", "Exists", &[])], small, &none),
            Ok("Standard_NC24ads_A100_v4")
        );
        assert_eq!(
            chosen(&[("topology.kubernetes.io/region", "In", &["westus"])], small, &none),
            Err(NoOffer::NothingFits)
        );
        assert_eq!(
            chosen(&[("karpenter.sh/capacity-type", "In", &["spot"])], small, &none),
            Err(NoOffer::NothingFits)
        );
    }

    #[test]
    fn what_azure_has_refused_is_passed_over_and_comes_back() {
        let mut back_off = BackOff::default();
        let class = class();
        let request = VmRequest {
            subscription: &class.subscription,
            region: "eastus2",
            size: "Standard_D8s_v5",
            family: "standardDSv5Family",
            capacity_type: CapacityType::OnDemand,
            zone: None,
            class: "default",
            hunting: None,
        };
        let failure =
            ArmFailure { code: Some("AllocationFailed".to_owned()), ..ArmFailure::default() };
        back_off.refused(&request, &Trouble::of_failure(&failure, false), now());
        assert_eq!(chosen(&[], Needs::default(), &back_off), Ok("Standard_NC24ads_A100_v4"));
        let only = [("node.kubernetes.io/instance-type", "In", &["Standard_D8s_v5"][..])];
        let error = chosen(&only, Needs::default(), &back_off).unwrap_err();
        let text = "Azure has refused every size that fits (1): Standard_D8s_v5";
        assert_eq!(error.to_string(), text);
        back_off.granted(&request);
        assert_eq!(chosen(&only, Needs::default(), &back_off), Ok("Standard_D8s_v5"));
    }
}
