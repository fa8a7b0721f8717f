//! Compares the results of node images: the quickest hint whether the image causes a failure.

use std::collections::BTreeMap;

use bringup_contract::{ImageVersion, Open};
use bringup_objects::BootstrapReport;
use bringup_objects::karpenter::POOL_LABEL;
use bringup_objects::report::Phase;
use serde::Serialize;

use crate::cluster::ClaimRow;

/// The number of images that are shown.
const MOST: usize = 5;

/// The family and version of an image. Images of different families are built on the same days, so a version
/// alone is ambiguous.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Image {
    pub(crate) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) family: Option<String>,
}

impl Image {
    /// The image in an ID such as `…/images/V3gen2/versions/202601.27.0`.
    pub(crate) fn of_id(id: &str) -> Option<Self> {
        let version = ImageVersion::find(id)?.to_string();
        let family = bringup_explain::family(id).map(ToOwned::to_owned);
        Some(Self { version, family })
    }

    /// The image in a report.
    pub(crate) fn of_report(report: &BootstrapReport) -> Option<Self> {
        let named = report.spec.image.as_deref().and_then(Self::of_id);
        named.or_else(|| Some(Self { version: report.spec.image_version.clone()?, family: None }))
    }

    /// The name for users, such as `V3gen2 202601.27.0`.
    pub(crate) fn words(&self) -> String {
        match &self.family {
            Some(family) => format!("{family} {}", self.version),
            None => self.version.clone(),
        }
    }
}

/// An attempt to bring up a node, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) image: Image,
    pub(crate) pool: Option<String>,
    pub(crate) joined: bool,
}

impl Attempt {
    /// The failure that a report describes, unless the node came up later.
    pub(crate) fn of_report(report: &BootstrapReport) -> Option<Self> {
        match report.phase() {
            Open::Known(Phase::Superseded) => None,
            Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => Some(Self {
                image: Image::of_report(report)?,
                pool: pool(report).map(ToOwned::to_owned),
                joined: false,
            }),
        }
    }

    /// The success of a NodeClaim with an existing Node.
    pub(crate) fn of_claim(claim: &ClaimRow) -> Option<Self> {
        let image = claim.image.as_deref().and_then(Image::of_id)?;
        claim.registered.then(|| Self { image, pool: claim.pool.clone(), joined: true })
    }
}

/// The pool of the object that a report describes.
pub(crate) fn pool(report: &BootstrapReport) -> Option<&str> {
    let parent = report.spec.parent_ref.as_ref().filter(|parent| parent.kind == "NodePool");
    let label = || Some(report.metadata.labels.as_ref()?.get(POOL_LABEL)?.as_str());
    parent.map(|parent| parent.name.as_str()).or_else(label)
}

/// The results of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fared {
    #[serde(flatten)]
    pub(crate) image: Image,
    pub(crate) failed: usize,
    pub(crate) joined: usize,
    /// Whether this is the image of the failed node.
    pub(crate) at_hand: bool,
}

/// The results of the failed node's image and of others: images of the same pool first, the newest first.
pub(crate) fn compare(
    at_hand: &Image,
    pool: Option<&str>,
    attempts: impl IntoIterator<Item = Attempt>,
) -> Vec<Fared> {
    let mut tally: BTreeMap<Image, (usize, usize, bool)> = BTreeMap::new();
    for attempt in attempts {
        let same_pool = pool.is_some() && attempt.pool.as_deref() == pool;
        let (failed, joined, near) = tally.entry(attempt.image).or_default();
        *(if attempt.joined { joined } else { failed }) += 1;
        *near |= same_pool;
    }
    let mut images: Vec<_> = tally.into_iter().collect();
    images.sort_by(|(left, (_, _, left_near)), (right, (_, _, right_near))| {
        let rank = |image: &Image, near: bool| (image != at_hand, !near);
        rank(left, *left_near).cmp(&rank(right, *right_near)).then_with(|| right.cmp(left))
    });
    images.truncate(MOST);
    let fared = images.into_iter().map(|(image, (failed, joined, _))| Fared {
        at_hand: image == *at_hand,
        image,
        failed,
        joined,
    });
    fared.collect()
}

/// One text per image, such as `202601.27.0: 3 of 3 failed`; the family only if there are several.
pub(crate) fn in_words(images: &[Fared]) -> Vec<String> {
    let mixed = images.iter().any(|one| one.image.family != images[0].image.family);
    let words = images.iter().map(|one| {
        let all = one.failed + one.joined;
        let (count, how) =
            if one.failed > 0 { (one.failed, "failed") } else { (one.joined, "joined") };
        let image = if mixed { one.image.words() } else { one.image.version.clone() };
        format!("{image}: {count} of {all} {how}")
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use bringup_objects::report::ReportSpec;

    use super::*;

    fn image(version: &str) -> Image {
        Image { version: version.to_owned(), family: Some("V3gen2".to_owned()) }
    }

    fn attempts(count: usize, version: &str, pool: &str, joined: bool) -> Vec<Attempt> {
        let one = Attempt { image: image(version), pool: Some(pool.to_owned()), joined };
        vec![one; count]
    }

    #[test]
    fn the_image_at_hand_comes_first_with_how_many_failed() {
        let all = [
            attempts(5, "202601.13.0", "default", true),
            attempts(3, "202601.27.0", "default", false),
        ];
        let fared = compare(&image("202601.27.0"), Some("default"), all.concat());
        assert_eq!(
            in_words(&fared).join("; "),
            "202601.27.0: 3 of 3 failed; 202601.13.0: 5 of 5 joined"
        );
    }

    #[test]
    fn images_of_the_same_pool_go_before_newer_ones_of_others_and_five_are_shown() {
        let all = [
            attempts(1, "202602.09.0", "gpu", true),
            attempts(2, "202601.13.0", "default", true),
            attempts(1, "202601.27.0", "default", false),
            attempts(6, "202601.27.0", "gpu", true),
            attempts(1, "202512.01.0", "gpu", true),
            attempts(1, "202511.01.0", "gpu", true),
            attempts(1, "202510.01.0", "gpu", false),
        ];
        let fared = compare(&image("202601.27.0"), Some("default"), all.concat());
        assert_eq!(
            in_words(&fared),
            [
                "202601.27.0: 1 of 7 failed",
                "202601.13.0: 2 of 2 joined",
                "202602.09.0: 1 of 1 joined",
                "202512.01.0: 1 of 1 joined",
                "202511.01.0: 1 of 1 joined",
            ]
        );
    }

    #[test]
    fn families_built_on_the_same_day_are_not_mixed_up() {
        let ubuntu = Image::of_id("/CommunityGalleries/g/images/2204gen2/versions/202601.27.0");
        let ubuntu = Attempt { image: ubuntu.unwrap(), pool: None, joined: true };
        let all = [attempts(3, "202601.27.0", "default", false), vec![ubuntu]];
        let fared = compare(&image("202601.27.0"), None, all.concat());
        assert_eq!(
            in_words(&fared),
            ["V3gen2 202601.27.0: 3 of 3 failed", "2204gen2 202601.27.0: 1 of 1 joined"]
        );
    }

    #[test]
    fn a_report_counts_unless_its_node_came_up_after_all() {
        let mut report = BootstrapReport::new("a-1", ReportSpec::default());
        report.spec.image_version = Some("202601.27.0".to_owned());
        assert_eq!(Attempt::of_report(&report).map(|one| one.joined), Some(false));
        report.status.get_or_insert_default().phase = Phase::Superseded.into();
        assert_eq!(Attempt::of_report(&report), None);
    }
}
