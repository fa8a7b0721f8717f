//! Image, scripts and provisioner do not go together.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ImageContractDrift,
    title: "image, scripts and provisioner do not go together",
    looks_like: "`unknown flag: --…` that an older kubelet had, `components.json: no such file`, `Using VHD distro but file .. not found`.",
    misleads: "kubelet gets the blame, or the step that missed the file.",
    remedy: "See what runs together: `az aks nodepool show -g GROUP --cluster-name CLUSTER -n POOL --query \"[nodeImageVersion, currentOrchestratorVersion]\"`, on the node `kubelet --version` and `ls -l /opt/azure`. Use an image and a provisioner of the same time: the newest image with `az aks nodepool upgrade -g GROUP --cluster-name CLUSTER -n POOL --node-image-only`, or the provisioner release that belongs to a pinned image. Compare the failing flag or file with the image's release notes (github.com/Azure/AgentBaker).",
    signs: &[
        Sign::new(39, &["required variables are not set"]),
        Sign::new(98, &["unknown flag: --azure-container-registry-config"]),
        Sign::new(98, &["unknown flag: --cloud-provider"]),
        Sign::new(98, &["unknown flag: --container-runtime"]),
        Sign::new(98, &["unknown flag: --pod-infra-container-image"]),
        Sign::new(98, &["unknown flag: --network-plugin"]),
        Sign::new(98, &["unknown flag: --cloud-config"]),
        Sign::new(98, &["unknown flag: --keep-terminated-pod-volumes"]),
        Sign::new(98, &["unknown flag: --experimental"]),
        Sign::new(98, &["components.json", "no such file"]),
        Sign::new(98, &["using vhd distro but file"]),
        Sign::new(98, &["neither microsoft-prod.list nor microsoft-prod.sources found"]),
        Sign::new(99, &["unknown linux distribution"]),
        Sign::new(99, &["is not defined for this os"]),
        Sign::new(99, &["version_id not found"]),
        Sign::new(99, &["failed to load gpu config: read"]),
        Sign::new(100, &["keyerror: 'write_files'"]).fair(),
        Sign::new(100, &["verify_dns_health ''"]).fair(),
        Sign::new(99, &["kubeadm", "port 10250 is in use"]).fair(),
        Sign::new(99, &["[error port-", "is in use"]).fair(),
        Sign::new(99, &["[error fileavailable--etc-kubernetes"]).fair(),
        Sign::new(100, &["unknown shorthand flag"]).fair(),
        Sign::new(100, &["unknown command '"]).near(&["kubelet", "kubeadm"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "failed to parse kubelet flag: unknown flag: --azure-container-registry-config",
    leaves: "Flag --cluster-dns has been deprecated, use the config file given by --config.",
}
