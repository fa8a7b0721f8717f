//! The rules, one cause a file. Which of several findings decides is said by the ranks of their
//! signs, which are data.

#![allow(
    clippy::doc_markdown,
    reason = "the pages of the rules are for people, who know these names"
)]

/// The two examples that every rule has: a text it must find, one it must leave to others.
macro_rules! examples {
    (finds: $finds:literal, leaves: $leaves:literal $(,)?) => {
        #[cfg(test)]
        mod tests {
            use super::RULE;

            #[test]
            fn it_is_found() {
                assert!(crate::rules::finds(&RULE, $finds));
            }

            #[test]
            fn it_is_left_to_others() {
                assert!(!crate::rules::finds(&RULE, $leaves));
            }
        }
    };
}

pub mod allocation_failed;
pub mod api_server_dns_failure;
pub mod api_server_unreachable;
pub mod arm_throttled;
pub mod artifact_missing;
pub mod authorization_failed;
pub mod binary_missing;
pub mod bootstrap_token_invalid;
pub mod clock_skew;
pub mod cluster_ca_mismatch;
pub mod cni_failure;
pub mod config_rejected;
pub mod container_runtime_failure;
pub mod control_plane_not_ready;
pub mod credential_expired;
pub mod disk_full;
pub mod disk_unsupported;
pub mod dns_failure;
pub mod download_interrupted;
pub mod egress_blocked;
pub mod extension_handler_fault;
pub mod extension_timeout;
pub mod gpu_driver_failure;
pub mod gpu_hardware_fault;
pub mod guest_agent_unresponsive;
pub mod guest_network_missing;
pub mod identity_not_assigned;
pub mod image_contract_drift;
pub mod imds_unreachable;
pub mod invalid_request;
pub mod kernel_mismatch;
pub mod kubelet_config_invalid;
pub mod kubelet_failure;
pub mod machine_not_clean;
pub mod nic_reserved;
pub mod node_identity_conflict;
pub mod os_provisioning_failure;
pub mod out_of_memory;
pub mod package_manager_locked;
pub mod package_repository_failure;
pub mod permission_denied;
pub mod platform_transient;
pub mod policy_denied;
pub mod provisioner_never_started;
pub mod proxy_misconfigured;
pub mod quota_exceeded;
pub mod reboot_interrupted;
pub mod registry_throttled;
pub mod registry_unauthorized;
pub mod registry_unreachable;
pub mod script_defect;
pub mod secure_boot_refused;
pub mod sku_unavailable;
pub mod spot_evicted;
pub mod subnet_exhausted;
pub mod subscription_not_usable;
pub mod time_budget_exhausted;
pub mod tls_bootstrap_pending;
pub mod tls_trust_failure;
pub mod user_data_invalid;
pub mod version_skew;
pub mod vm_too_small;
pub mod wire_server_unreachable;
pub mod wrong_architecture;

use bringup_contract::Cause;

use crate::rule::Rule;

/// Every rule.
pub static RULES: &[&Rule] = &[
    &disk_full::RULE,
    &out_of_memory::RULE,
    &binary_missing::RULE,
    &permission_denied::RULE,
    &config_rejected::RULE,
    &imds_unreachable::RULE,
    &wire_server_unreachable::RULE,
    &identity_not_assigned::RULE,
    &api_server_dns_failure::RULE,
    &dns_failure::RULE,
    &proxy_misconfigured::RULE,
    &clock_skew::RULE,
    &cluster_ca_mismatch::RULE,
    &tls_trust_failure::RULE,
    &registry_unauthorized::RULE,
    &registry_unreachable::RULE,
    &artifact_missing::RULE,
    &authorization_failed::RULE,
    &egress_blocked::RULE,
    &api_server_unreachable::RULE,
    &download_interrupted::RULE,
    &package_manager_locked::RULE,
    &package_repository_failure::RULE,
    &bootstrap_token_invalid::RULE,
    &tls_bootstrap_pending::RULE,
    &node_identity_conflict::RULE,
    &disk_unsupported::RULE,
    &vm_too_small::RULE,
    &kernel_mismatch::RULE,
    &gpu_hardware_fault::RULE,
    &gpu_driver_failure::RULE,
    &container_runtime_failure::RULE,
    &cni_failure::RULE,
    &image_contract_drift::RULE,
    &kubelet_config_invalid::RULE,
    &version_skew::RULE,
    &control_plane_not_ready::RULE,
    &kubelet_failure::RULE,
    &user_data_invalid::RULE,
    &provisioner_never_started::RULE,
    &script_defect::RULE,
    &time_budget_exhausted::RULE,
    &reboot_interrupted::RULE,
    &os_provisioning_failure::RULE,
    &guest_agent_unresponsive::RULE,
    &extension_handler_fault::RULE,
    &extension_timeout::RULE,
    &quota_exceeded::RULE,
    &sku_unavailable::RULE,
    &allocation_failed::RULE,
    &subnet_exhausted::RULE,
    &nic_reserved::RULE,
    &policy_denied::RULE,
    &invalid_request::RULE,
    &arm_throttled::RULE,
    &platform_transient::RULE,
    &credential_expired::RULE,
    &subscription_not_usable::RULE,
    &spot_evicted::RULE,
    &registry_throttled::RULE,
    &wrong_architecture::RULE,
    &secure_boot_refused::RULE,
    &machine_not_clean::RULE,
    &guest_network_missing::RULE,
];

/// The rule of a cause. Only `Unknown` has none.
pub(crate) fn of(cause: Cause) -> &'static Rule {
    RULES.iter().find(|rule| rule.cause == cause).expect("every cause but Unknown has a rule")
}

/// Whether a rule has a sign in a text.
#[cfg(test)]
fn finds(rule: &Rule, text: &str) -> bool {
    let evidence = crate::evidence::Evidence::of_text(text);
    let pages = crate::matcher::pages(&evidence);
    crate::matcher::find(&pages, None, &evidence.signatures, None)
        .findings
        .iter()
        .any(|finding| finding.rule.cause == rule.cause)
}

#[cfg(test)]
mod tests {
    use bringup_contract::Cause;

    use super::*;
    use crate::lines::normal;

    #[test]
    fn every_cause_but_unknown_has_one_rule() {
        for cause in Cause::ALL {
            let rules = RULES.iter().filter(|rule| rule.cause == *cause).count();
            assert_eq!(rules, usize::from(*cause != Cause::Unknown), "{cause}");
        }
    }

    #[test]
    fn signs_are_written_as_they_are_compared() {
        for rule in RULES {
            for sign in rule.signs {
                for part in sign.all.iter().chain(sign.none).chain(sign.near) {
                    assert_eq!(normal(part), **part, "{}", rule.cause);
                    assert!(!part.is_empty());
                }
            }
        }
    }
}
