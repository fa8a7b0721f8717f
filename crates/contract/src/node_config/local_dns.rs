//! The configuration of the DNS cache on a node, which is a `CoreDNS` server.

use std::fmt::Write as _;

use super::environment::{EnvironmentError, refused};
use super::{Configuration, LocalDnsOverrides};

const NODE: &str = "169.254.10.10";
const CLUSTER: &str = "169.254.10.11";
const AZURE_DNS: &str = "168.63.129.16";
const USUAL_CORE_DNS: &str = "10.0.0.10";

/// Whether a hosts file answers queries for critical names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hosts {
    With,
    Without,
}

/// The origin of a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Node,
    Cluster,
}

/// The complete Corefile; `None` if the node has no DNS cache.
pub(super) fn corefile(
    config: &Configuration,
    hosts: Hosts,
) -> Result<Option<String>, EnvironmentError> {
    let profile = config.local_dns_profile();
    if !profile.enable_local_dns {
        return Ok(None);
    }
    let network = config.cluster_config().cluster_network_config();
    let core_dns = match network.core_dns_service_ip.as_str() {
        "" => USUAL_CORE_DNS,
        address => word(address)?,
    };
    let mut file = File::default();
    file.open("health-check.localdns.local:53");
    file.line(format_args!("bind {NODE} {CLUSTER}"));
    file.line("whoami");
    file.close();
    let sides =
        [(Side::Node, &profile.vnet_dns_overrides), (Side::Cluster, &profile.kube_dns_overrides)];
    for (side, overrides) in sides {
        for (domain, settings) in overrides {
            block(&mut file, side, word(domain)?, settings, core_dns, hosts)?;
        }
    }
    Ok(Some(file.text))
}

fn block(
    file: &mut File,
    side: Side,
    domain: &str,
    settings: &LocalDnsOverrides,
    core_dns: &str,
    hosts: Hosts,
) -> Result<(), EnvironmentError> {
    let (listener, name) = match side {
        Side::Node => (NODE, "localdns"),
        Side::Cluster => (CLUSTER, "localdns-pod"),
    };
    let root = domain == ".";
    file.open(format_args!("{domain}:53"));
    match settings.query_logging.as_str() {
        "Error" => file.line("errors"),
        "Log" => file.line("log"),
        _ => {}
    }
    file.line(format_args!("bind {listener}"));
    if root && hosts == Hosts::With {
        file.open("hosts /etc/localdns/hosts");
        file.lines(&["ttl 5", "reload 5s", "fallthrough"]);
        file.close();
    }
    // The cluster's DNS would send queries that it cannot answer back to this cache.
    let to_cluster = domain.ends_with("cluster.local")
        || settings.forward_destination == "ClusterCoreDNS" && !(root && side == Side::Node);
    let upstream = if to_cluster { core_dns } else { AZURE_DNS };
    file.open(format_args!("forward . {upstream}"));
    forward(file, settings)?;
    file.close();
    file.line(format_args!("ready {listener}:8181"));
    cache(file, settings);
    file.line("loop");
    file.line(format_args!("nsid {name}"));
    file.line("prometheus :9253");
    if root {
        file.open("template ANY ANY internal.cloudapp.net");
        file.line(r#"match "^(?:[^.]+\.){4,}internal\.cloudapp\.net\.$""#);
        file.lines(&["rcode NXDOMAIN", "fallthrough"]);
        file.close();
        file.open("template ANY ANY reddog.microsoft.com");
        file.line("rcode NXDOMAIN");
        file.close();
    }
    file.close();
    Ok(())
}

fn forward(file: &mut File, settings: &LocalDnsOverrides) -> Result<(), EnvironmentError> {
    match settings.protocol.as_str() {
        "ForceTCP" => file.line("force_tcp"),
        "PreferUDP" => file.line("prefer_udp"),
        _ => {}
    }
    match settings.forward_policy.as_str() {
        "Sequential" => file.line("policy sequential"),
        "RoundRobin" => file.line("policy round_robin"),
        "Random" => file.line("policy random"),
        _ => {}
    }
    if let Some(most) = settings.max_concurrent {
        file.line(format_args!("max_concurrent {most}"));
    }
    let check = settings.health_check();
    if let Some(duration) = check.duration.as_deref().filter(|duration| !duration.is_empty()) {
        let mut line = format!("health_check {}", word(duration)?);
        if check.no_rec == Some(true) {
            line.push_str(" no_rec");
        }
        if let Some(domain) = check.domain.as_deref().filter(|domain| !domain.is_empty()) {
            let _ = write!(line, " domain {}", word(domain)?);
        }
        file.line(line);
    }
    if settings.failfast_all_unhealthy_upstreams == Some(true) {
        file.line("failfast_all_unhealthy_upstreams");
    }
    Ok(())
}

fn cache(file: &mut File, settings: &LocalDnsOverrides) {
    match settings.cache_duration_in_seconds {
        Some(seconds) => file.open(format_args!("cache {seconds}")),
        None => file.open("cache"),
    }
    file.lines(&["success 9984", "denial 9984"]);
    let refresh = match settings.serve_stale.as_str() {
        "Verify" => Some("verify"),
        "Immediate" => Some("immediate"),
        _ => None,
    };
    if let (Some(refresh), Some(seconds)) = (refresh, settings.serve_stale_duration_in_seconds) {
        file.line(format_args!("serve_stale {seconds}s {refresh}"));
    }
    file.line("servfail 0");
    file.close();
}

/// A value that must be a single word in the file.
fn word(text: &str) -> Result<&str, EnvironmentError> {
    let part = |next: char| next.is_ascii_alphanumeric() || matches!(next, '.' | '-' | '_' | ':');
    if !text.is_empty() && text.chars().all(part) {
        return Ok(text);
    }
    let what = "a name, address or duration of local_dns_profile is none".to_owned();
    Err(refused("LOCALDNS_GENERATED_COREFILE", what))
}

/// A text of nested blocks.
#[derive(Default)]
struct File {
    text: String,
    depth: usize,
}

impl File {
    fn line(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 4);
    }

    fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.line(line);
        }
    }

    fn open(&mut self, head: impl std::fmt::Display) {
        self.line(format_args!("{head} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }
}
