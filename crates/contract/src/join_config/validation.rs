//! Finds values that a configuration may not contain, by the name of the field.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Artifact, JoinConfig, Taint};

/// A field with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The name of the field, as in the file.
    pub field: String,
    /// The problem, without the value.
    pub why: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.why)
    }
}

/// All fields with invalid values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InvalidConfig(pub Vec<Invalid>);

/// A version in the format of Kubernetes and containerd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32, u32);

impl Version {
    /// Parses `1.34.2`, with or without a leading `v` and a suffix after `-`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let plain = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = plain.split('.').map(|part| part.parse::<u32>().ok());
        let version = Self(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(version)
    }
}

/// The mistakes found in a configuration.
#[derive(Default)]
struct Mistakes(Vec<Invalid>);

impl Mistakes {
    fn unless(&mut self, holds: bool, field: &str, why: &str) {
        if !holds {
            self.0.push(Invalid { field: field.to_owned(), why: why.to_owned() });
        }
    }
}

pub(super) fn validate(config: &JoinConfig) -> Result<(), InvalidConfig> {
    let mut wrong = Mistakes::default();
    cluster(config, &mut wrong);
    node(config, &mut wrong);
    versions(config, &mut wrong);
    artifacts(config, &mut wrong);
    wrong.unless(
        is_token(config.token.reveal()),
        "token",
        "not six letters or digits, a point, and sixteen more",
    );
    let image = config.sandbox_image.as_deref();
    let is_image = |image: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        !image.is_empty() && image.bytes().all(fits)
    };
    wrong.unless(image.is_none_or(is_image), "sandboxImage", "not the name of an image");
    for (step, seconds) in &config.limits {
        let fits = (1..=3_600).contains(seconds);
        wrong.unless(fits, &format!("limits.{step}"), "not from 1 to 3600 seconds");
    }
    if wrong.0.is_empty() { Ok(()) } else { Err(InvalidConfig(wrong.0)) }
}

fn cluster(config: &JoinConfig, wrong: &mut Mistakes) {
    let cluster = &config.cluster;
    let host = cluster.server.strip_prefix("https://").filter(|host| is_host(host));
    wrong.unless(host.is_some(), "cluster.server", "not https:// with a host and a port");
    let data: String =
        cluster.certificate_authority_data.chars().filter(|c| !c.is_whitespace()).collect();
    let pem = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let is_certificate = |pem: String| pem.contains("-----BEGIN CERTIFICATE-----");
    wrong.unless(
        pem.is_some_and(is_certificate),
        "cluster.certificateAuthorityData",
        "not a PEM certificate in base64",
    );
}

fn node(config: &JoinConfig, wrong: &mut Mistakes) {
    let node = &config.node;
    wrong.unless(is_node_name(&node.name), "node.name", "not a name that a node can have");
    let ip = node.ip.as_deref().is_none_or(|ip| ip.parse::<IpAddr>().is_ok());
    wrong.unless(ip, "node.ip", "not an address");
    let printed = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let id = node.provider_id.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && printed(&node.provider_id)
    });
    wrong.unless(id, "node.providerId", "not a scheme, ://, and an id");
    wrong.unless((10..=250).contains(&node.max_pods), "node.maxPods", "not from 10 to 250");
    for (key, value) in &node.labels {
        let field = format!("node.labels[{key}]");
        wrong.unless(is_key(key), &field, "not a key that a label can have");
        wrong.unless(is_value(value), &field, "not a value that a label can have");
    }
    for (at, Taint { key, value, .. }) in node.taints.iter().enumerate() {
        wrong.unless(is_key(key), &format!("node.taints[{at}].key"), "not a key");
        wrong.unless(is_value(value), &format!("node.taints[{at}].value"), "not a value");
    }
}

/// kubelet may be up to three minor versions older than the control plane, and never newer.
fn versions(config: &JoinConfig, wrong: &mut Mistakes) {
    let kubelet = Version::of(&config.kubernetes_version);
    wrong.unless(kubelet.is_some(), "kubernetesVersion", "not a version such as 1.34.2");
    let Some(told) = &config.cluster.version else { return };
    let plane = Version::of(told);
    wrong.unless(plane.is_some(), "cluster.version", "not a version such as 1.34.2");
    if let (Some(kubelet), Some(plane)) = (kubelet, plane) {
        let fits =
            kubelet.0 == plane.0 && kubelet.1 <= plane.1 && kubelet.1.saturating_add(3) >= plane.1;
        wrong.unless(
            fits,
            "kubernetesVersion",
            "does not go with the control plane: not newer, and at most three minor versions older",
        );
    }
}

fn artifacts(config: &JoinConfig, wrong: &mut Mistakes) {
    let all = &config.artifacts;
    let wanted = Version::of(&config.kubernetes_version);
    for (name, artifact) in config.named_artifacts() {
        one_artifact(name, artifact, wrong);
        if matches!(name, "kubeadm" | "kubelet" | "kubectl") {
            let field = format!("artifacts.{name}.version");
            let same = wanted.is_none() || Version::of(&artifact.version) == wanted;
            wrong.unless(same, &field, "is not kubernetesVersion");
        }
    }
    let recent = Version::of(&all.containerd.version).is_none_or(|version| version.0 >= 2);
    wrong.unless(recent, "artifacts.containerd.version", "is older than 2.0");
}

fn one_artifact(name: &str, artifact: &Artifact, wrong: &mut Mistakes) {
    let field = |part: &str| format!("artifacts.{name}.{part}");
    let version = Version::of(&artifact.version);
    wrong.unless(version.is_some(), &field("version"), "not a version such as 1.2.3");
    let rest = ["https://", "http://"].iter().find_map(|way| artifact.url.strip_prefix(way));
    let plain = |rest: &str| {
        !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"\\`".contains(&byte))
    };
    wrong.unless(rest.is_some_and(plain), &field("url"), "not an address of http or https");
    wrong.unless(is_sha256(&artifact.sha256), &field("sha256"), "not 64 hexadecimal digits");
}

impl JoinConfig {
    /// All artifacts, with their names in the configuration.
    pub fn named_artifacts(&self) -> Vec<(&'static str, &Artifact)> {
        let all = &self.artifacts;
        let fixed = [
            ("containerd", &all.containerd),
            ("runc", &all.runc),
            ("kubeadm", &all.kubeadm),
            ("kubelet", &all.kubelet),
            ("kubectl", &all.kubectl),
        ];
        fixed.into_iter().chain(all.cni.as_ref().map(|cni| ("cni", cni))).collect()
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_token(text: &str) -> bool {
    let small = |part: &str, length: usize| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.split_once('.').is_some_and(|(id, secret)| small(id, 6) && small(secret, 16))
}

/// A host, optionally with a port and a trailing slash.
fn is_host(text: &str) -> bool {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let named = |host: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        !host.is_empty() && host.bytes().all(fits)
    };
    let addressed = inside.is_some_and(|inside| inside.parse::<std::net::Ipv6Addr>().is_ok());
    (named(host) || addressed) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// A name according to RFC 1123, which Kubernetes requires.
fn is_node_name(text: &str) -> bool {
    let part = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(fits) && !part.starts_with('-') && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

fn is_key(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    domain.is_none_or(is_node_name) && !name.is_empty() && is_value(name)
}

/// The value of a label: may be empty.
fn is_value(text: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let bytes = text.as_bytes();
    text.len() <= 63
        && text.bytes().all(fits)
        && outer(bytes.first().copied())
        && outer(bytes.last().copied())
}
