//! Configurations generated from the contract itself, so that they include a new field at once. The same
//! number always gives the same configuration.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::node_config::{ENUMS, SCHEMA};
use serde_json::{Map, Value, json};

/// The number of generated configurations.
pub(crate) const COUNT: u64 = 500;

/// The class of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Usual,
    Empty,
    Extreme,
}

/// A configuration, and the classes of its values.
pub(crate) struct Generated {
    /// The configuration with the names of fields.
    pub(crate) config: Value,
    /// The configuration as sent: also with JSON names, on one line or many.
    pub(crate) text: String,
    pub(crate) classes: BTreeSet<(&'static str, &'static str, Class)>,
}

/// The configuration with this number.
pub(crate) fn configuration(number: u64) -> Generated {
    let mut generator = Generator { state: number, classes: BTreeSet::new() };
    let mut config = generator.message("Configuration");
    config["version"] = json!("v1");
    let text = match number % 3 {
        0 => config.to_string(),
        1 => format!("{config:#}\n"),
        _ => with_json_names("Configuration", &config).to_string(),
    };
    Generated { config, text, classes: generator.classes }
}

/// The classes of values that a field of this type can have.
pub(crate) fn classes_of(kind: &str) -> &'static [Class] {
    match kind {
        "bool" => &[Class::Usual, Class::Empty],
        kind if is_message(kind) => &[Class::Usual],
        _ => &[Class::Usual, Class::Empty, Class::Extreme],
    }
}

fn fields(
    message: &str,
) -> impl Iterator<Item = &'static (&'static str, &'static str, i32, &'static str, &'static str)> {
    SCHEMA.iter().filter(move |(owner, ..)| *owner == message)
}

fn is_message(kind: &str) -> bool {
    SCHEMA.iter().any(|(owner, ..)| *owner == kind)
}

struct Generator {
    state: u64,
    classes: BTreeSet<(&'static str, &'static str, Class)>,
}

impl Generator {
    /// The random number generator Splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        let count = all.len() as u64;
        all[usize::try_from(self.next() % count).unwrap()]
    }

    fn message(&mut self, message: &'static str) -> Value {
        let mut members = Map::new();
        for (owner, name, _, kind, label) in fields(message) {
            let chance = if is_message(kind) { 80 } else { 60 };
            if self.next() % 100 >= chance {
                continue;
            }
            let allowed = classes_of(kind);
            let class = match self.next() % 10 {
                0..=5 => Class::Usual,
                6..=7 => Class::Empty,
                _ => Class::Extreme,
            };
            let class = if allowed.contains(&class) { class } else { allowed[0] };
            self.classes.insert((owner, name, class));
            members.insert((*name).to_owned(), self.field(owner, name, kind, label, class));
        }
        Value::Object(members)
    }

    fn field(
        &mut self,
        owner: &str,
        name: &str,
        kind: &'static str,
        label: &str,
        class: Class,
    ) -> Value {
        if let Some(of) = kind.strip_prefix("map<string,") {
            return self.map(owner, name, of.trim_end_matches('>'), class);
        }
        if label == "repeated" {
            let count = match class {
                Class::Usual => self.next() % 2 + 1,
                Class::Empty => 0,
                Class::Extreme => 30,
            };
            return (0..count).map(|_| json!(self.text(owner, name, class))).collect();
        }
        match kind {
            "string" => json!(self.text(owner, name, class)),
            "bool" => json!(class != Class::Empty),
            "int32" => self.whole_number(name, class),
            "double" => match class {
                Class::Usual => json!(1.5),
                Class::Empty => json!(0.0),
                Class::Extreme => {
                    json!([1e21, 2.5e-7, -0.1, 1e300][usize::try_from(self.next() % 4).unwrap()])
                }
            },
            message if is_message(message) => self.message(message),
            enumeration => self.enumeration(enumeration, class),
        }
    }

    fn whole_number(&mut self, name: &str, class: Class) -> Value {
        match (class, name) {
            (Class::Empty, _) => json!(0),
            (Class::Extreme, _) => {
                json!([i32::MIN, -1, 21_601, i32::MAX][usize::try_from(self.next() % 4).unwrap()])
            }
            (Class::Usual, "cse_timeout") => json!(1200),
            (Class::Usual, _) => json!(self.next() % 5000 + 1),
        }
    }

    fn enumeration(&mut self, enumeration: &str, class: Class) -> Value {
        let named: Vec<&str> = ENUMS
            .iter()
            .filter(|(owner, _, number)| {
                *owner == enumeration && (*number == 0) == (class == Class::Empty)
            })
            .map(|(_, name, _)| *name)
            .collect();
        if class == Class::Extreme { json!(99) } else { json!(self.one_of(&named)) }
    }

    fn map(&mut self, owner: &str, name: &str, of: &'static str, class: Class) -> Value {
        let count = match class {
            Class::Usual => 3,
            Class::Empty => 0,
            Class::Extreme => 12,
        };
        let mut members = Map::new();
        for index in 0..count {
            let key = match (name, class) {
                ("kubelet_flags", _) => self.one_of(FLAGS).to_owned(),
                ("kubelet_node_labels", _) => format!("kubernetes.azure.com/label-{index}"),
                (_, _) if of == "LocalDnsOverrides" => self.one_of(DOMAINS).to_owned(),
                (_, Class::Extreme) => format!("Key é {index} <&> \"'"),
                (_, Class::Usual | Class::Empty) => format!("KEY_{index}"),
            };
            let value = match of {
                "bool" => json!(self.next().is_multiple_of(2)),
                "string" => json!(self.text(owner, name, class)),
                message => self.message(message),
            };
            members.insert(key, value);
        }
        Value::Object(members)
    }

    fn text(&mut self, owner: &str, name: &str, class: Class) -> String {
        match class {
            Class::Empty => String::new(),
            Class::Usual => match usual(name) {
                [] => format!("{owner}.{name}.{}", self.next() % 100),
                pool => self.one_of(pool).to_owned(),
            },
            Class::Extreme => match name {
                "net_ipv4_ip_local_port_range" => self.one_of(ODD_PORT_RANGES).to_owned(),
                // Other values of these fields are refused on purpose; other tests check that.
                "http_proxy"
                | "https_proxy"
                | "no_proxy_entries"
                | "core_dns_service_ip"
                | "duration"
                | "domain" => "x".repeat(2000),
                _ => self.one_of(ODD_TEXTS).to_owned(),
            },
        }
    }
}

const FLAGS: &[&str] = &[
    "--streaming-connection-idle-timeout",
    "--register-with-taints",
    "--max-pods",
    "--node-ip",
    "--rotate-certificates",
    "--cloud-provider",
];
const DOMAINS: &[&str] =
    &[".", "cluster.local", "sub.cluster.local", "contoso.com", "in-addr.arpa"];
const ODD_PORT_RANGES: &[&str] = &[
    "1024 65535",
    "65535 1024",
    "0 65535",
    "32768 65330",
    "  32768\t65331 ",
    "a b",
    "1 2 3",
    "-1 65535",
];
const ODD_TEXTS: &[&str] = &[
    "a\"b\\c$(d) `e` <f>&'g'\n\th\r\n=,;é☃𝄞",
    " ",
    "\n",
    "{\"a\":\"[stdout]\"}",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
];

/// The meaningful values of a field; any text is valid for other fields.
fn usual(name: &str) -> &'static [&'static str] {
    match name {
        "vm_size" => &[
            "Standard_D4s_v5",
            "Standard_DC2s",
            "standard_dc4s",
            "Standard_DC4s",
            "Standard_NC6",
            "STANDARD_NC24",
            "Standard_NC6s_v3",
            "Standard_NC24ads_A100_v4",
            "Standard_NC8ads_A10_v4",
            "Standard_NV36ads_A10_v5",
            "standard_nc24lds_xl_rtxpro6000bse_v6",
            "Standard_NC320ds_xl_RTXPRO6000BSE_v6",
            "Standard_ND96asr_v4",
            "Standard_ND96isrf_H200_v5",
        ],
        "location" => &[
            "eastus",
            "East US 2",
            "chinanorth3",
            "China East 2",
            "usgovvirginia",
            "USDoD Central",
            "germanycentral",
            "Germany Northeast",
            "germanywestcentral",
        ],
        "kubernetes_version" => &["1.21.9", "1.22.0", "1.33.9", "1.34.0", "1.35.1", "1.100.0"],
        "custom_cloud_env_name" => &["akscustom", "AKSCustom", "AzurePublicCloud"],
        "custom_env_json_content" => &[PLAIN_CLOUD, PACKED_CLOUD, "{}"],
        "net_ipv4_ip_local_port_range" => &["32768 60999", "32768 65400", "1024 65330"],
        "query_logging" => &["Error", "Log"],
        "protocol" => &["ForceTCP", "PreferUDP"],
        "forward_destination" => &["VnetDNS", "ClusterCoreDNS"],
        "forward_policy" => &["Sequential", "RoundRobin", "Random"],
        "serve_stale" => &["Verify", "Immediate", "Disable"],
        "core_dns_service_ip" => &["10.2.0.10", "fd00::10"],
        "duration" => &["1s", "500ms"],
        "domain" => &["health.contoso.com"],
        "http_proxy" | "https_proxy" => &["http://proxy.contoso.com:3128", "http://me:pw@10.0.0.4"],
        "no_proxy_entries" => &["localhost", "168.63.129.16", ".svc", ""],
        "proxy_trusted_ca" | "custom_ca_certs" => &["LS0tLS1\r\nCRUdJTi\n", "LS0tLS1CRUdJTg=="],
        "critical_fqdns" => &["mcr.microsoft.com", " packages.aks.azure.com ", ""],
        "mig_strategy" => &["None", "Single", "Mixed"],
        "transparent_hugepage_support" => &["always", "madvise", "never"],
        "container_data_dir" => &["/mnt/containers", "/mnt/with space"],
        "streaming_connection_idle_timeout" => &["4h"],
        _ => &[],
    }
}

pub(crate) const PLAIN_CLOUD: &str =
    r#"{"name":"akscustom","resourceManagerEndpoint":"https://management.plain/"}"#;
/// The description of a cloud in base64.
pub(crate) const PACKED_CLOUD: &str =
    "eyJyZXNvdXJjZU1hbmFnZXJFbmRwb2ludCI6Imh0dHBzOi8vbWFuYWdlbWVudC5wYWNrZWQvIn0=";

fn with_json_names(message: &str, value: &Value) -> Value {
    let members = value.as_object().unwrap().iter().map(|(name, value)| {
        let (.., kind, _) = fields(message).find(|(_, known, ..)| known == name).unwrap();
        let value = match kind.strip_prefix("map<string,").map(|of| of.trim_end_matches('>')) {
            Some(of) if is_message(of) => {
                let entries = value.as_object().unwrap().iter();
                entries.map(|(key, value)| (key.clone(), with_json_names(of, value))).collect()
            }
            None if is_message(kind) => with_json_names(kind, value),
            Some(_) | None => value.clone(),
        };
        (camel_case(name), value)
    });
    members.collect()
}

/// The default JSON name of a field. Fields with another JSON name keep their plain name, which is valid as
/// well.
pub(crate) fn camel_case(name: &str) -> String {
    let other = ["tls", "qps", "dns", "gc", "qos", "cfs", "ca", "ttl"];
    if name.split('_').skip(1).any(|part| other.contains(&part)) {
        return name.to_owned();
    }
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| {
        let (head, tail) = part.split_at(part.len().min(1));
        whole + &head.to_uppercase() + tail
    })
}

#[test]
fn the_packed_cloud_is_base64_of_json() {
    let text = STANDARD.decode(PACKED_CLOUD).unwrap();
    let cloud: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(cloud["resourceManagerEndpoint"], "https://management.packed/");
}
