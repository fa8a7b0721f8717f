//! The variables that depend on several fields.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::environment::{EnvironmentError, Host, refused};
use super::message::Value as _;
use super::show::Show as _;
use super::writer::Writer;
use super::{
    BootstrappingAuthMethod, Configuration, KubeletDisk, NetworkPlugin, NetworkPolicy, cloud,
    containerd, gpu, local_dns, sysctl,
};

type Rule = fn(&Configuration, &Host) -> Result<String, EnvironmentError>;

/// The longest time limit for the scripts, in seconds.
const LONGEST_CSE: i32 = 21_600;
const USUAL_CSE: i32 = 900;

/// Variables and their values.
pub(super) const DERIVED: &[(&str, Rule)] = &[
    ("SGX_NODE", |c, _| Ok(gpu::has_sgx(&c.vm_size).show())),
    ("GPU_NEEDS_FABRIC_MANAGER", |c, _| Ok(gpu::needs_fabric_manager(&c.vm_size).show())),
    ("GPU_DRIVER_TYPE", |c, _| Ok(gpu::Driver::of(&c.vm_size).name().to_owned())),
    ("GPU_DRIVER_VERSION", |c, host| Ok(gpu::versions(c, host)?.driver)),
    ("GPU_IMAGE_SHA", |c, host| Ok(gpu::versions(c, host)?.image)),
    ("SHOULD_CONFIGURE_HTTP_PROXY", |c, _| {
        let proxy = c.http_proxy_config();
        Ok((!proxy.http_proxy.is_empty() || !proxy.https_proxy.is_empty()).show())
    }),
    ("SHOULD_CONFIGURE_HTTP_PROXY_CA", |c, _| {
        Ok((!c.http_proxy_config().proxy_trusted_ca.is_empty()).show())
    }),
    ("HTTP_PROXY_TRUSTED_CA", |c, _| Ok(on_one_line(&c.http_proxy_config().proxy_trusted_ca))),
    ("PROXY_VARS", |c, _| proxy_vars(c)),
    ("ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE", |c, _| Ok(is_kubenet(c).show())),
    ("SHOULD_CONFIG_SWAP_FILE", |c, _| {
        let linux = c.custom_linux_os_config();
        Ok((linux.enable_swap_config && linux.swap_file_size > 0).show())
    }),
    ("SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE", |c, _| {
        let linux = c.custom_linux_os_config();
        let set = !linux.transparent_defrag.is_empty();
        Ok((set || !linux.transparent_hugepage_support.is_empty()).show())
    }),
    ("SHOULD_CONFIG_CONTAINERD_ULIMITS", |c, _| {
        Ok(c.custom_linux_os_config().ulimit_config.is_some().show())
    }),
    ("CONTAINERD_ULIMITS", |c, _| Ok(ulimits(c))),
    ("TARGET_CLOUD", |c, _| Ok(cloud::name(c).to_owned())),
    ("TARGET_ENVIRONMENT", |c, _| Ok(cloud::environment(c).to_owned())),
    ("ARM_RESOURCE_ENDPOINT", |c, _| Ok(cloud::arm_endpoint(c))),
    ("IS_CUSTOM_CLOUD", |c, _| Ok(cloud::is_custom(c).show())),
    ("AZURE_ENVIRONMENT_FILEPATH", |c, _| Ok(cloud::environment_file(c))),
    ("REPO_DEPOT_ENDPOINT", |c, _| Ok(cloud::repo_depot(c))),
    ("HAS_CUSTOM_SEARCH_DOMAIN", |c, _| {
        let domain = c.custom_search_domain_config();
        let all = [&domain.domain_name, &domain.realm_user, &domain.realm_password];
        Ok(all.iter().all(|part| !part.is_empty()).show())
    }),
    ("ENABLE_SECURE_TLS_BOOTSTRAPPING", |c, _| {
        let method = c.bootstrapping_config().bootstrapping_auth_method;
        Ok((method == BootstrappingAuthMethod::SECURE_TLS_BOOTSTRAPPING).show())
    }),
    ("HAS_KUBELET_DISK_TYPE", |c, _| {
        Ok((c.kubelet_config().kubelet_disk_type == KubeletDisk::TEMP_DISK).show())
    }),
    ("KUBELET_FLAGS", |c, _| Ok(kubelet_flags(c))),
    ("KUBELET_NODE_LABELS", |c, _| Ok(pairs(&c.kubelet_config().kubelet_node_labels, ","))),
    ("KUBELET_CONFIG_FILE_CONTENT", |c, _| Ok(kubelet_file(c))),
    ("KUBENET_TEMPLATE", |_, _| Ok(STANDARD.encode(containerd::KUBENET_TEMPLATE))),
    ("CONTAINERD_CONFIG_CONTENT", |c, host| {
        Ok(STANDARD.encode(containerd::config(c, host.containerd, containerd::Variant::Gpu)))
    }),
    ("CONTAINERD_CONFIG_NO_GPU_CONTENT", |c, host| {
        Ok(STANDARD.encode(containerd::config(c, host.containerd, containerd::Variant::NoGpu)))
    }),
    ("SYSCTL_CONTENT", |c, _| sysctl::content(c).map(|text| STANDARD.encode(text))),
    ("SHOULD_ENABLE_HOSTS_PLUGIN", |c, _| {
        let profile = c.local_dns_profile();
        Ok((profile.enable_local_dns && profile.enable_hosts_plugin).show())
    }),
    ("LOCALDNS_CPU_LIMIT", |c, _| {
        let milli_cores = c.local_dns_profile().cpu_limit_in_milli_cores.unwrap_or(2000);
        Ok(format!("{:.1}%", f64::from(milli_cores) / 10.0))
    }),
    ("LOCALDNS_MEMORY_LIMIT", |c, _| {
        Ok(format!("{}M", c.local_dns_profile().memory_limit_in_mb.unwrap_or(128)))
    }),
    ("LOCALDNS_CRITICAL_FQDNS", |c, _| {
        let names = c.local_dns_profile().critical_fqdns.iter().map(|name| name.trim());
        Ok(names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(","))
    }),
    ("LOCALDNS_HOSTS_PLUGIN_REFRESH_INTERVAL_IN_SECONDS", |c, _| {
        let seconds = c.local_dns_profile().hosts_plugin_refresh_interval_in_seconds;
        Ok(seconds.filter(|seconds| *seconds > 0).map_or_else(String::new, |one| one.show()))
    }),
    ("LOCALDNS_GENERATED_COREFILE", |c, _| corefile(c, local_dns::Hosts::Without)),
    ("LOCALDNS_COREFILE_BASE", |c, _| corefile(c, local_dns::Hosts::Without)),
    ("LOCALDNS_COREFILE_WITH_HOSTS", |c, _| corefile(c, local_dns::Hosts::With)),
    ("CSE_TIMEOUT", |c, _| {
        let allowed = c.cse_timeout.filter(|seconds| (1..=LONGEST_CSE).contains(seconds));
        Ok(allowed.unwrap_or(USUAL_CSE).show())
    }),
];

/// Text without line breaks.
pub(super) fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], "")
}

/// Whether pods get their network from a bridge that the scripts have to maintain.
pub(super) fn is_kubenet(config: &Configuration) -> bool {
    let network = config.network_config();
    network.network_plugin == NetworkPlugin::KUBENET
        && network.network_policy != NetworkPolicy::CALICO
}

/// Shell text that the scripts evaluate as root, so it must not contain special characters of the shell.
fn proxy_vars(config: &Configuration) -> Result<String, EnvironmentError> {
    let proxy = config.http_proxy_config();
    let entries = proxy.no_proxy_entries.join(",");
    let mut parts = Vec::new();
    // A list with one empty entry counts as set: it unsets the inherited variable.
    for (name, field, value, given) in [
        ("NO_PROXY", "no_proxy_entries", &entries, !proxy.no_proxy_entries.is_empty()),
        ("HTTPS_PROXY", "https_proxy", &proxy.https_proxy, !proxy.https_proxy.is_empty()),
        ("http_proxy", "http_proxy", &proxy.http_proxy, !proxy.http_proxy.is_empty()),
    ] {
        if value.contains(['"', '`', '$', '\\', '\n', '\r']) {
            return Err(refused(
                "PROXY_VARS",
                format!("http_proxy_config.{field} has a character that a shell would act on"),
            ));
        }
        if given {
            parts.push(format!("export {name}=\"{value}\";"));
        }
    }
    Ok(parts.join(" "))
}

/// The scripts replace the spaces with line breaks.
fn ulimits(config: &Configuration) -> String {
    let Some(limits) = &config.custom_linux_os_config().ulimit_config else {
        return String::new();
    };
    let set = [("LimitMEMLOCK", &limits.max_locked_memory), ("LimitNOFILE", &limits.no_file)];
    let set = set.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    set.fold("[Service] ".to_owned(), |text, (name, value)| format!("{text}{name}={value} "))
}

const IDLE_TIMEOUT: &str = "--streaming-connection-idle-timeout";

fn kubelet_flags(config: &Configuration) -> String {
    let mut flags = config.kubelet_config().kubelet_flags.clone();
    if drops_idle_timeout(config) {
        flags.remove(IDLE_TIMEOUT);
    }
    pairs(&flags, " ")
}

fn pairs(map: &BTreeMap<String, String>, separator: &str) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(separator)
}

fn kubelet_file(config: &Configuration) -> String {
    let Some(kubelet) = &config.kubelet_config else { return String::new() };
    let mut file = kubelet.kubelet_config_file_config().clone();
    if drops_idle_timeout(config) {
        file.streaming_connection_idle_timeout.clear();
    }
    let mut writer = Writer::for_kubelet();
    file.write(&mut writer);
    STANDARD.encode(writer.finish())
}

/// Whether kubelet is too new to accept this setting.
fn drops_idle_timeout(config: &Configuration) -> bool {
    at_least(&config.kubernetes_version, [1, 34, 0])
}

/// Whether a version is equal to or later than another. An invalid version counts as the earliest.
pub(super) fn at_least(version: &str, other: [u32; 3]) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    let (numbers, preview) = match version.split_once('-') {
        Some((numbers, _)) => (numbers, true),
        None => (version, false),
    };
    let parts: Option<Vec<u32>> = numbers.split('.').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some([major, minor, patch]) => {
            let version = [*major, *minor, *patch];
            version > other || version == other && !preview
        }
        _ => false,
    }
}

fn corefile(config: &Configuration, hosts: local_dns::Hosts) -> Result<String, EnvironmentError> {
    Ok(local_dns::corefile(config, hosts)?.map_or_else(String::new, |text| STANDARD.encode(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_one_empty_entry_is_exported_and_no_list_is_not() {
        let mut config = Configuration::default();
        assert_eq!(proxy_vars(&config).unwrap(), "");
        let proxy = config.http_proxy_config.get_or_insert_default();
        proxy.no_proxy_entries.push(String::new());
        assert_eq!(proxy_vars(&config).unwrap(), "export NO_PROXY=\"\";");
    }

    #[test]
    fn versions_are_compared_by_their_parts() {
        assert!(at_least("1.34.0", [1, 34, 0]));
        assert!(at_least("v1.100.2", [1, 34, 0]));
        for before in ["", "1.34", "1.34.0-alpha.1", "1.33.9", "latest", "1.34.x"] {
            assert!(!at_least(before, [1, 34, 0]), "{before}");
        }
        assert!(at_least("1.34.1-rc.0", [1, 34, 0]));
    }
}
