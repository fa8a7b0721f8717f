//! A valid class: checked, normalised, with all defaults.

mod limits;

use std::collections::BTreeMap;
use std::time::Duration;

use bringup_azure::ResourceId;
use bringup_contract::Open;
pub use bringup_contract::flex::CapacityType;
use bringup_objects::flex::class::{FlexNodeClassSpec, ImageReference};
use bringup_objects::flex::machine::{Image, Place};

use crate::names;

/// The default image: publisher, offer, SKU, version.
pub const DEFAULT_IMAGE: [&str; 4] = ["microsoft-dsvm", "ubuntu-hpc", "2204", "latest"];
const OS_DISK: i32 = 128;
const PODS: i32 = 110;
const BOOT: Duration = Duration::from_mins(15);
const LAUNCH: Duration = Duration::from_mins(5);
/// The most attempts an hour at scarce capacity, unless a class sets another number.
const ATTEMPTS: u32 = 60;

/// An invalid field of a class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct FieldError {
    /// The field.
    pub field: &'static str,
    /// The problem with the field.
    pub what: String,
}

/// A class that is valid and normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The subscription, in lower case.
    pub subscription: String,
    /// The region, as `eastus2`.
    pub location: String,
    /// The resource group.
    pub resource_group: String,
    /// The subnet.
    pub subnet: String,
    /// The image.
    pub image: Image,
    /// The size of the OS disk in GiB.
    pub os_disk: i32,
    /// The public keys of the users who may log in.
    pub ssh_public_keys: Vec<String>,
    /// The most pods of a node.
    pub max_pods: i32,
    /// Additional tags.
    pub tags: BTreeMap<String, String>,
    /// The version of Kubernetes, without `v`; none: the cluster's version.
    pub kubernetes_version: Option<String>,
    /// How long a VM may take to join.
    pub boot_timeout: Duration,
    /// How long Azure may take to accept a VM.
    pub launch_timeout: Duration,
    /// Whether boot diagnostics, and so the serial console, are enabled.
    pub boot_diagnostics: bool,
    /// The most attempts an hour, if the class hunts for scarce capacity.
    pub hunting: Option<u32>,
    /// The VMs' capacity type.
    pub capacity_type: CapacityType,
    /// The allowed zones, sorted.
    pub zones: Vec<String>,
}

impl Class {
    /// Validates a class. Repeats the checks of the API server, because an object may be older than those.
    pub fn of(spec: &FlexNodeClassSpec) -> Result<Self, Vec<FieldError>> {
        let mut wrong = Vec::new();
        let mut say = |field: &'static str, what: String| wrong.push(FieldError { field, what });
        let location = spec.location.replace(' ', "").to_ascii_lowercase();
        if location.is_empty() || !location.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            say("location", format!("`{}` is not a region", spec.location));
        }
        if !is_uuid(&spec.subscription_id) {
            say("subscriptionID", format!("`{}` is not a UUID", spec.subscription_id));
        }
        match spec.subnet_id.parse::<ResourceId>() {
            Ok(id)
                if id.kind().eq_ignore_ascii_case("Microsoft.Network/virtualNetworks/subnets") => {}
            Ok(id) => say("subnetID", format!("it is of type {}, not a subnet", id.kind())),
            Err(error) => say("subnetID", error.to_string()),
        }
        limits::check(spec, &mut say);
        if spec.allocate_node_public_ip == Some(true) {
            say("allocateNodePublicIP", "it is not supported".to_owned());
        }
        let image = match (&spec.image_reference, &spec.image_id) {
            (Some(_), Some(_)) => {
                say("imageID", "it excludes imageReference".to_owned());
                Image::default()
            }
            (None, Some(id)) => Image::Id(id.clone()),
            (Some(reference), None) => {
                let image = marketplace(reference);
                if image.is_none() {
                    let what = "publisher, offer, sku and version must not be empty";
                    say("imageReference", what.to_owned());
                }
                image.unwrap_or_default()
            }
            (None, None) => default_image(),
        };
        let mut time = |field, text: &Option<String>, default| match text {
            None => default,
            Some(text) => match duration(text) {
                Some(time)
                    if (Duration::from_mins(3)..=Duration::from_hours(1)).contains(&time) =>
                {
                    time
                }
                _ => {
                    say(field, format!("`{text}` is not a time from 3m to 60m"));
                    default
                }
            },
        };
        let boot_timeout = time("bootTimeout", &spec.boot_timeout, BOOT);
        let launch_timeout = time("launchTimeout", &spec.launch_timeout, LAUNCH);
        let hunting = spec.hunting.as_ref().filter(|hunting| hunting.enabled).map(|hunting| {
            hunting.max_attempts_per_hour.and_then(|most| most.try_into().ok()).unwrap_or(ATTEMPTS)
        });
        let mut zones = spec.zones.clone();
        zones.sort_unstable();
        zones.dedup();
        let class = Self {
            subscription: spec.subscription_id.to_ascii_lowercase(),
            location,
            resource_group: spec.resource_group.clone(),
            subnet: spec.subnet_id.clone(),
            image,
            os_disk: spec.os_disk_size_gb.unwrap_or(OS_DISK),
            ssh_public_keys: spec.ssh_public_keys.clone(),
            max_pods: spec.max_pods_per_node.unwrap_or(PODS),
            tags: spec.tags.clone(),
            kubernetes_version: spec
                .kubernetes_version
                .as_ref()
                .map(|version| version.trim_start_matches('v').to_owned()),
            boot_timeout,
            launch_timeout,
            boot_diagnostics: spec.boot_diagnostics.as_deref() != Some("Disabled"),
            hunting,
            // The schema accepts no other value. An object with another value is not requested as spot.
            capacity_type: spec
                .capacity_type
                .as_ref()
                .and_then(Open::known)
                .unwrap_or(CapacityType::OnDemand),
            zones,
        };
        if wrong.is_empty() { Ok(class) } else { Err(wrong) }
    }

    /// The place of a machine of this class. `key` is the SSH key for a class without any, because Azure
    /// requires one.
    pub fn place(&self, machine: &str, uid: &str, cluster_uid: &str, key: &str) -> Place {
        let vm = names::vm(machine, &names::suffix(cluster_uid, uid));
        Place {
            machine_uid: Some(uid.to_owned()),
            subscription_id: self.subscription.clone(),
            resource_group: self.resource_group.clone(),
            location: self.location.clone(),
            subnet_id: self.subnet.clone(),
            nic: names::nic(&vm),
            disk: names::disk(&vm),
            vm,
            image: self.image.clone(),
            os_disk_size_gb: self.os_disk,
            boot_diagnostics: self.boot_diagnostics,
            ssh_public_keys: match self.ssh_public_keys.as_slice() {
                [] => vec![key.to_owned()],
                keys => keys.to_vec(),
            },
            tags: self.tags.clone(),
            boot_timeout_seconds: self.boot_timeout.as_secs().try_into().unwrap_or(i64::MAX),
            launch_timeout_seconds: self.launch_timeout.as_secs().try_into().unwrap_or(i64::MAX),
            max_pods: self.max_pods,
            kubernetes_version: self.kubernetes_version.clone(),
            hunting: self.hunting.is_some(),
        }
    }
}

/// Why the version skew between kubelet and the API server is unsupported, if so: kubelet must not be newer,
/// nor more than three minor versions older.
pub fn skew(kubelet: &str, server: &str) -> Option<String> {
    let minor = |version: &str| version.split('.').nth(1)?.parse::<u32>().ok();
    let (Some(kubelet_is), Some(server_is)) = (minor(kubelet), minor(server)) else {
        return Some(format!("`{kubelet}` is not a version such as 1.34.2"));
    };
    if kubelet_is > server_is {
        Some(format!("{kubelet} is newer than the cluster, which has {server}"))
    } else if kubelet_is.saturating_add(3) < server_is {
        Some(format!(
            "{kubelet} is more than three minor versions older than the cluster's {server}"
        ))
    } else {
        None
    }
}

fn default_image() -> Image {
    let [publisher, offer, sku, version] = DEFAULT_IMAGE.map(str::to_owned);
    Image::Marketplace { publisher, offer, sku, version }
}

fn marketplace(reference: &ImageReference) -> Option<Image> {
    let version = reference.version.clone().unwrap_or_else(|| "latest".to_owned());
    let ImageReference { publisher, offer, sku, .. } = reference.clone();
    let whole = [&publisher, &offer, &sku, &version].iter().all(|part| !part.is_empty());
    whole.then_some(Image::Marketplace { publisher, offer, sku, version })
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A duration in the notation of Kubernetes: `15m`, `1h`, `5m30s`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut number = String::new();
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let seconds = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: u64 = std::mem::take(&mut number).parse().ok()?;
        total = total.checked_add(Duration::from_secs(count.checked_mul(seconds)?))?;
    }
    (number.is_empty() && !total.is_zero()).then_some(total)
}

#[cfg(test)]
pub(crate) mod tests {
    use bringup_objects::flex::class::Hunting;

    use super::*;

    pub(crate) fn spec() -> FlexNodeClassSpec {
        FlexNodeClassSpec {
            subscription_id: "00000000-0000-0000-0000-00000000000A".to_owned(),
            location: "East US 2".to_owned(),
            resource_group: "rg".to_owned(),
            subnet_id: "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/x".to_owned(),
            ..FlexNodeClassSpec::default()
        }
    }

    #[test]
    fn a_class_is_normalised_and_has_its_defaults() {
        let class = Class::of(&spec()).unwrap();
        assert_eq!(class.location, "eastus2");
        assert!(class.subscription.ends_with("00a"));
        assert_eq!((class.os_disk, class.max_pods), (128, 110));
        assert_eq!((class.boot_timeout, class.launch_timeout), (BOOT, LAUNCH));
        assert_eq!(class.image, default_image());
        assert!(class.boot_diagnostics && class.hunting.is_none());
        let hunting = Hunting { enabled: true, max_attempts_per_hour: Some(7) };
        let spec = FlexNodeClassSpec {
            boot_timeout: Some("5m30s".to_owned()),
            kubernetes_version: Some("v1.34.2".to_owned()),
            hunting: Some(hunting),
            ..spec()
        };
        let class = Class::of(&spec).unwrap();
        assert_eq!(class.boot_timeout, Duration::from_secs(330));
        assert_eq!(class.kubernetes_version.as_deref(), Some("1.34.2"));
        assert_eq!(class.hunting, Some(7));
    }

    #[test]
    fn case_29_and_33_every_invalid_field_is_named_before_any_request_to_azure() {
        let image = ImageReference { publisher: "p".to_owned(), ..ImageReference::default() };
        let wrong = FlexNodeClassSpec {
            subscription_id: "x".to_owned(),
            subnet_id:
                "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v"
                    .to_owned(),
            image_reference: Some(image),
            allocate_node_public_ip: Some(true),
            boot_timeout: Some("2m".to_owned()),
            launch_timeout: Some("soon".to_owned()),
            ..spec()
        };
        let fields: Vec<&str> =
            Class::of(&wrong).unwrap_err().into_iter().map(|error| error.field).collect();
        assert_eq!(
            fields,
            [
                "subscriptionID",
                "subnetID",
                "allocateNodePublicIP",
                "imageReference",
                "bootTimeout",
                "launchTimeout"
            ]
        );
    }

    #[test]
    fn case_34_a_class_without_a_key_gets_one_whose_private_half_does_not_exist() {
        let class = Class::of(&spec()).unwrap();
        assert_eq!(
            class.place("m", "u", "c", "ssh-ed25519 MADE").ssh_public_keys,
            ["ssh-ed25519 MADE"]
        );
        let keyed =
            FlexNodeClassSpec { ssh_public_keys: vec!["ssh-rsa MINE".to_owned()], ..spec() };
        let place = Class::of(&keyed).unwrap().place("m", "u", "c", "ssh-ed25519 MADE");
        assert_eq!(place.ssh_public_keys, ["ssh-rsa MINE"]);
    }

    #[test]
    fn case_36_kubelet_is_not_newer_than_the_cluster_and_at_most_three_versions_older() {
        for fine in ["1.34.9", "1.34.2", "1.33.0", "1.31.0"] {
            assert_eq!(skew(fine, "1.34.2"), None, "{fine}");
        }
        for wrong in ["1.35.0", "1.30.9", "2", ""] {
            assert!(skew(wrong, "1.34.2").is_some(), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_as_kubernetes_writes_them() {
        assert_eq!(duration("1h"), Some(Duration::from_hours(1)));
        assert_eq!(duration("1h5m1s"), Some(Duration::from_secs(3901)));
        for none in ["", "5", "m", "-5m", "5 m", "0s", "99999999999999999999h"] {
            assert_eq!(duration(none), None, "{none}");
        }
    }
}
