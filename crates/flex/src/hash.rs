//! Drift: whether a Node still matches its class, by a hash of the class.

use std::fmt::Write as _;

use bringup_objects::flex::machine::Image;
use sha2::{Digest as _, Sha256};

use crate::class::Class;

/// The annotation that stores the hash.
pub const ANNOTATION: &str = "flex.aks.azure.com/azureflex-nodeclass-hash";
/// The annotation that stores the version of the hash.
pub const VERSION_ANNOTATION: &str = "flex.aks.azure.com/azureflex-nodeclass-hash-version";
/// The version of the algorithm that computes the hash.
pub const VERSION: &str = "v2";
/// The drift reason of a Node whose class has changed.
pub const DRIFTED: &str = "AzureFlexNodeClassChanged";

/// The hash of a class's normalised values: a default has the same hash as the same value written out.
pub fn of(class: &Class) -> String {
    let mut digest = Sha256::new();
    let mut add = |value: &str| {
        digest.update((value.len() as u64).to_be_bytes());
        digest.update(value);
    };
    add(VERSION);
    add(&class.subscription);
    add(&class.location);
    add(&class.resource_group.to_ascii_lowercase());
    add(&class.subnet.to_ascii_lowercase());
    match &class.image {
        Image::Marketplace { publisher, offer, sku, version } => {
            for part in ["marketplace", publisher, offer, sku, version] {
                add(part);
            }
        }
        Image::Id(id) => {
            add("id");
            add(&id.to_ascii_lowercase());
        }
    }
    add("Standard");
    add(&class.os_disk.to_string());
    add(&class.max_pods.to_string());
    add(class.kubernetes_version.as_deref().unwrap_or_default());
    add(class.capacity_type.word());
    add(&class.zones.join(","));
    for (name, value) in &class.tags {
        add(name);
        add(value);
    }
    hexadecimal(&digest.finalize())
}

/// Why a Node has drifted, if so. A hash of another version proves nothing.
pub fn drift(class: &Class, hash: Option<&str>, version: Option<&str>) -> Option<&'static str> {
    (version == Some(VERSION) && hash.is_some_and(|hash| hash != of(class))).then_some(DRIFTED)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use bringup_objects::flex::class::{FlexNodeClassSpec, ImageReference};

    use super::*;
    use crate::class::tests::spec;
    use crate::class::{CapacityType, DEFAULT_IMAGE};

    fn class() -> Class {
        Class::of(&spec()).unwrap()
    }

    #[test]
    fn case_40_a_default_and_the_same_written_out_are_the_same() {
        let [publisher, offer, sku, version] = DEFAULT_IMAGE.map(str::to_owned);
        let image = ImageReference { publisher, offer, sku, version: Some(version) };
        let written = FlexNodeClassSpec {
            image_reference: Some(image),
            os_disk_size_gb: Some(128),
            max_pods_per_node: Some(110),
            location: "eastus2".to_owned(),
            capacity_type: Some(CapacityType::OnDemand.into()),
            ..spec()
        };
        assert_eq!(of(&class()), of(&Class::of(&written).unwrap()));
    }

    #[test]
    fn case_40_each_change_that_matters_drifts_and_the_order_of_tags_does_not() {
        let tagged = |tags: [(&str, &str); 2]| Class {
            tags: tags.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..class()
        };
        assert_eq!(of(&tagged([("a", "1"), ("b", "2")])), of(&tagged([("b", "2"), ("a", "1")])));
        assert_ne!(of(&tagged([("a", "1b"), ("c", "")])), of(&tagged([("a", "1"), ("bc", "")])));
        let changes = [
            Class { location: "westus".to_owned(), ..class() },
            Class { os_disk: 256, ..class() },
            Class { max_pods: 30, ..class() },
            Class { image: Image::Id("/x".to_owned()), ..class() },
            Class { kubernetes_version: Some("1.34.2".to_owned()), ..class() },
            Class { capacity_type: CapacityType::Spot, ..class() },
            Class { zones: vec!["1".to_owned()], ..class() },
            Class { resource_group: "other".to_owned(), ..class() },
        ];
        let hash = of(&class());
        for changed in &changes {
            assert_eq!(drift(changed, Some(&hash), Some(VERSION)), Some(DRIFTED), "{changed:?}");
        }
        let unmoved = Class { boot_diagnostics: false, hunting: Some(3), ..class() };
        assert_eq!(drift(&unmoved, Some(&hash), Some(VERSION)), None);
    }

    #[test]
    fn case_40_a_hash_of_another_making_is_no_drift() {
        assert_eq!(drift(&class(), Some("x"), Some("v1")), None);
        assert_eq!(drift(&class(), Some("x"), None), None);
        assert_eq!(drift(&class(), None, Some(VERSION)), None);
    }
}
