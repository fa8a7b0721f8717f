//! Kernel parameters.

use std::collections::BTreeMap;

use super::environment::{EnvironmentError, refused};
use super::show::Show as _;
use super::{Configuration, SysctlConfig};

/// A port that Azure's agents use, although it is inside the ephemeral port range.
const RESERVED_PORT: u32 = 65_330;

/// Lines `key=value`, sorted.
pub(super) fn content(config: &Configuration) -> Result<String, EnvironmentError> {
    let linux = config.custom_linux_os_config();
    let set = linux.sysctl_config();
    let mut lines: BTreeMap<&str, String> = BTreeMap::from([
        ("net.ipv4.tcp_retries2", 8.show()),
        ("net.core.message_burst", 80.show()),
        ("net.core.message_cost", 40.show()),
    ]);
    for (key, value) in numbers(set) {
        lines.extend(value.map(|value| (key, value.show())));
    }
    let reuse = set.net_ipv4_tcp_tw_reuse.map(i32::from);
    lines.extend(reuse.map(|reuse| ("net.ipv4.tcp_tw_reuse", reuse.show())));
    if let Some(range) = &set.net_ipv4_ip_local_port_range {
        if range.contains(['\n', '\r']) {
            let field = "custom_linux_os_config.sysctl_config.net_ipv4_ip_local_port_range";
            return Err(refused("SYSCTL_CONTENT", format!("{field} has a line break")));
        }
        if holds_reserved_port(range) {
            lines.insert("net.ipv4.ip_local_reserved_ports", RESERVED_PORT.to_string());
        }
        lines.insert("net.ipv4.ip_local_port_range", range.clone());
    }
    Ok(lines.into_iter().fold(String::new(), |text, (key, value)| format!("{text}{key}={value}\n")))
}

fn holds_reserved_port(range: &str) -> bool {
    let ends: Option<Vec<u32>> = range.split_whitespace().map(|end| end.parse().ok()).collect();
    match ends.as_deref() {
        Some([start, end]) => 0 < *start && start < end && *end > RESERVED_PORT,
        _ => false,
    }
}

fn numbers(set: &SysctlConfig) -> [(&'static str, Option<i32>); 26] {
    let or = |value: Option<i32>, default| Some(value.unwrap_or(default));
    [
        ("net.core.somaxconn", or(set.net_core_somaxconn, 16_384)),
        ("net.ipv4.tcp_max_syn_backlog", or(set.net_ipv4_tcp_max_syn_backlog, 16_384)),
        ("net.ipv4.neigh.default.gc_thresh1", or(set.net_ipv4_neigh_default_gc_thresh1, 4096)),
        ("net.ipv4.neigh.default.gc_thresh2", or(set.net_ipv4_neigh_default_gc_thresh2, 8192)),
        ("net.ipv4.neigh.default.gc_thresh3", or(set.net_ipv4_neigh_default_gc_thresh3, 16_384)),
        ("net.core.netdev_max_backlog", set.net_core_netdev_max_backlog),
        ("net.core.rmem_default", set.net_core_rmem_default),
        ("net.core.rmem_max", set.net_core_rmem_max),
        ("net.core.wmem_default", set.net_core_wmem_default),
        ("net.core.wmem_max", set.net_core_wmem_max),
        ("net.core.optmem_max", set.net_core_optmem_max),
        ("net.ipv4.tcp_max_tw_buckets", set.net_ipv4_tcp_max_tw_buckets),
        ("net.ipv4.tcp_fin_timeout", set.net_ipv4_tcp_fin_timeout),
        ("net.ipv4.tcp_keepalive_time", set.net_ipv4_tcp_keepalive_time),
        ("net.ipv4.tcp_keepalive_probes", set.net_ipv4_tcp_keepalive_probes),
        ("net.ipv4.tcp_keepalive_intvl", set.net_ipv4_tcpkeepalive_intvl),
        ("net.netfilter.nf_conntrack_max", set.net_netfilter_nf_conntrack_max),
        ("net.netfilter.nf_conntrack_buckets", set.net_netfilter_nf_conntrack_buckets),
        ("fs.inotify.max_user_watches", set.fs_inotify_max_user_watches),
        ("fs.file-max", set.fs_file_max),
        ("fs.aio-max-nr", set.fs_aio_max_nr),
        ("fs.nr_open", set.fs_nr_open),
        ("kernel.threads-max", set.kernel_threads_max),
        ("vm.max_map_count", set.vm_max_map_count),
        ("vm.swappiness", set.vm_swappiness),
        ("vm.vfs_cache_pressure", set.vm_vfs_cache_pressure),
    ]
}
