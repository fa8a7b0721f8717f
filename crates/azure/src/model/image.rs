//! The image of a VM's disk.

use serde_json::Value;

use super::read::text;

/// A reference to the image of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageReference {
    /// `/CommunityGalleries/…/images/…/versions/…`
    CommunityGallery(String),
    /// `/SharedGalleries/…`
    SharedGallery(String),
    /// The resource ID of an image, or of an image version in a gallery.
    Id(String),
    /// A marketplace image.
    Marketplace {
        /// The publisher.
        publisher: Option<String>,
        /// The offer.
        offer: Option<String>,
        /// The SKU.
        sku: Option<String>,
        /// The version, resolved if Azure returns the resolved one.
        version: Option<String>,
    },
}

impl ImageReference {
    pub(super) fn of(value: &Value) -> Option<Self> {
        if let Some(id) = text(value, "/communityGalleryImageId") {
            return Some(Self::CommunityGallery(id));
        }
        if let Some(id) = text(value, "/sharedGalleryImageId") {
            return Some(Self::SharedGallery(id));
        }
        if let Some(id) = text(value, "/id") {
            return Some(Self::Id(id));
        }
        let (publisher, offer, sku) =
            (text(value, "/publisher"), text(value, "/offer"), text(value, "/sku"));
        let version = text(value, "/exactVersion").or_else(|| text(value, "/version"));
        if publisher.is_none() && offer.is_none() && sku.is_none() && version.is_none() {
            return None;
        }
        Some(Self::Marketplace { publisher, offer, sku, version })
    }

    /// The version; of an ID, the segment after `versions`.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::CommunityGallery(id) | Self::SharedGallery(id) | Self::Id(id) => {
                let mut segments = id.split('/');
                segments.find(|segment| segment.eq_ignore_ascii_case("versions"))?;
                segments.next().filter(|version| !version.is_empty())
            }
            Self::Marketplace { version, .. } => version.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_is_found_in_every_kind_of_image() {
        for (image, version) in [
            (
                json!({"communityGalleryImageId": "/CommunityGalleries/AKS/images/V3gen2/versions/202601.27.0"}),
                Some("202601.27.0"),
            ),
            (
                json!({"sharedGalleryImageId": "/SharedGalleries/u/Images/i/Versions/1.0.0"}),
                Some("1.0.0"),
            ),
            (
                json!({"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/x/images/y/versions/2.0.0"}),
                Some("2.0.0"),
            ),
            (
                json!({"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/y"}),
                None,
            ),
            (
                json!({"publisher": "p", "offer": "o", "sku": "s", "version": "latest", "exactVersion": "1.2.3"}),
                Some("1.2.3"),
            ),
        ] {
            assert_eq!(ImageReference::of(&image).unwrap().version(), version, "{image}");
        }
        for odd in [json!({}), json!(null), json!("x"), json!({"id": 7})] {
            assert_eq!(ImageReference::of(&odd), None);
        }
    }
}
