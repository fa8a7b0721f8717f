//! Marketplace images and their versions.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Reply};
use crate::scenario::MarketplaceImage;

impl Azure {
    /// The versions of an image, which Azure lists without an envelope.
    pub(crate) fn get_image_versions(&self, image: &[String]) -> Result<Reply, ArmError> {
        let everything = [String::from("1.0.0")];
        let versions: &[String] = if self.scenario.images.is_empty() {
            &everything
        } else {
            let known = |one: &&MarketplaceImage| {
                [&one.publisher, &one.offer, &one.sku]
                    .iter()
                    .zip(image)
                    .all(|(known, asked)| known.eq_ignore_ascii_case(asked))
            };
            let found = self.scenario.images.iter().find(known);
            &found.ok_or_else(|| absent(&image.join(":")))?.versions
        };
        let listed: Vec<Value> =
            versions.iter().map(|version| json!({ "name": version })).collect();
        Ok(Reply::json(200, Value::Array(listed)))
    }

    /// Refuses a VM whose image does not exist.
    pub(crate) fn check_image(&self, properties: &Value) -> Result<(), ArmError> {
        let reference = &properties["storageProfile"]["imageReference"];
        let part = |name: &str| reference[name].as_str().unwrap_or_default();
        if self.scenario.images.is_empty() || part("publisher").is_empty() {
            return Ok(());
        }
        let exists = self.scenario.images.iter().any(|one| {
            one.publisher.eq_ignore_ascii_case(part("publisher"))
                && one.offer.eq_ignore_ascii_case(part("offer"))
                && one.sku.eq_ignore_ascii_case(part("sku"))
                && (part("version") == "latest"
                    || one.versions.iter().any(|version| version == part("version")))
        });
        let parts = ["publisher", "offer", "sku", "version"].map(part);
        if exists { Ok(()) } else { Err(absent(&parts.join(":"))) }
    }
}

fn absent(image: &str) -> ArmError {
    let message = format!(
        "The platform image '{image}' is not available. Verify that all fields in the storage profile are correct."
    );
    ArmError::new(404, "PlatformImageNotFound", message)
}
