//! The labels that kubelet may set on its own node. kubelet refuses to start with any other label.

use std::collections::BTreeMap;

/// Labels of Kubernetes itself that kubelet may set.
const ALLOWED: &[&str] = &[
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.kubernetes.io/region",
    "failure-domain.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/instance-type",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Labels, separated by whether kubelet may set them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Labels that kubelet may set.
    pub passed: BTreeMap<String, String>,
    /// Labels that kubelet may not set: the component that registers the node sets them.
    pub left_out: Vec<String>,
}

impl Labels {
    pub(super) fn of(labels: &BTreeMap<String, String>) -> Self {
        let mut sorted = Self::default();
        for (key, value) in labels {
            if is_refused_by_kubelet(key) {
                sorted.left_out.push(key.clone());
            } else {
                sorted.passed.insert(key.clone(), value.clone());
            }
        }
        sorted
    }

    /// The value of `--node-labels`.
    pub fn flag(&self) -> String {
        let pairs: Vec<String> =
            self.passed.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(",")
    }
}

/// Whether kubelet refuses to start with this label in `--node-labels`.
pub fn is_refused_by_kubelet(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let within = |of: &str| {
        domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let of_kubernetes = within("kubernetes.io") || within("k8s.io");
    let given_away = within("kubelet.kubernetes.io") || within("node.kubernetes.io");
    of_kubernetes && !given_away && !ALLOWED.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_37_labels_that_kubelet_refuses_are_left_out() {
        for refused in [
            "kubernetes.io/role",
            "node-role.kubernetes.io/worker",
            "node-restriction.kubernetes.io/x",
            "x.k8s.io/y",
            "k8s.io/y",
        ] {
            assert!(is_refused_by_kubelet(refused), "{refused}");
        }
        for passed in [
            "agentpool",
            "karpenter.sh/nodepool",
            "kubernetes.azure.com/managed",
            "notkubernetes.io/x",
            "node.kubernetes.io/anything",
            "a.kubelet.kubernetes.io/x",
            "topology.kubernetes.io/zone",
            "kubernetes.io/arch",
        ] {
            assert!(!is_refused_by_kubelet(passed), "{passed}");
        }
        let labels = [("a", "1"), ("b", ""), ("kubernetes.io/role", "x")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let sorted = Labels::of(&labels.into());
        assert_eq!(sorted.flag(), "a=1,b=");
        assert_eq!(sorted.left_out, ["kubernetes.io/role"]);
    }
}
