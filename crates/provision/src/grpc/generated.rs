//! The code that is generated from `proto/`: one module for each package, nested because they refer to each
//! other.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated: the proto files are what is read"
)]

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/services.rs"));

/// All fields but the token, which must not be logged.
impl fmt::Debug for kubeadm::Config {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Config")
            .field("server", &self.server)
            .field("node_labels", &self.node_labels)
            .field("node_ip", &self.node_ip)
            .field("register_with_taints", &self.register_with_taints)
            .field("max_pods_per_node", &self.max_pods_per_node)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_25_a_token_is_in_no_log() {
        let kubeadm = kubeadm::Config {
            server: Some("https://api:6443".to_owned()),
            token: Some("abcdef.0123456789abcdef".to_owned()),
            ..kubeadm::Config::default()
        };
        let spec = agentpools::azure::flexvm::AgentPoolSpec {
            kubeadm: Some(kubeadm),
            ..Default::default()
        };
        let written = format!("{spec:?}");
        assert!(written.contains("https://api:6443"), "{written}");
        assert!(!written.contains("abcdef"), "{written}");
    }
}
