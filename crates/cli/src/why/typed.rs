//! Parses the name that the user typed.

use bringup_objects::cluster_api::{GROUP, INFRASTRUCTURE};
use bringup_observe::machines::INFRA_KINDS;

use crate::vm;

/// The kind and the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A NodeClaim, a Node, a VM or a report.
    Any(String),
    /// A Machine.
    Machine(String),
    /// A provider object of this kind, such as an AzureMachine.
    Provided(&'static str, String),
}

impl Typed {
    /// Parses a name, `KIND/NAME` like kubectl, or an ID that ends with a name. Kubernetes names are lower
    /// case.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim().trim_end_matches('/');
        if let Some((kind, name)) = text.split_once('/')
            && !name.contains('/')
            && let Some(typed) = Self::kind(&kind.to_ascii_lowercase(), name.to_ascii_lowercase())
        {
            return typed;
        }
        let name = vm::name(text);
        let name = name.as_deref().or(text.rsplit('/').next()).unwrap_or_default();
        Self::Any(name.to_ascii_lowercase())
    }

    fn kind(kind: &str, name: String) -> Option<Self> {
        // `machines.v1beta2.cluster.x-k8s.io` is accepted, too.
        let (word, group) = kind.split_once('.').unwrap_or((kind, ""));
        let is_in = |known: &str| group.is_empty() || group.ends_with(known);
        match word {
            "machine" | "machines" | "ma" if is_in(GROUP) => Some(Self::Machine(name)),
            "azuremachine" | "azuremachines" if is_in(INFRASTRUCTURE) => {
                Some(Self::Provided(INFRA_KINDS[0], name))
            }
            "azuremachinepoolmachine" | "azuremachinepoolmachines" | "ampm"
                if is_in(INFRASTRUCTURE) =>
            {
                Some(Self::Provided(INFRA_KINDS[1], name))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(name: &str) -> Typed {
        Typed::Any(name.to_owned())
    }

    #[test]
    fn a_name_can_be_typed_as_the_end_of_an_id() {
        let id = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/AKS-1";
        assert_eq!(Typed::of(id), any("aks-1"));
        assert_eq!(Typed::of("nodeclaim/default-x"), any("default-x"));
        assert_eq!(Typed::of(" Default-X "), any("default-x"));
        assert_eq!(Typed::of(""), any(""));
    }

    #[test]
    fn machines_are_typed_as_kubectl_takes_them() {
        for kind in ["machine", "Machines", "ma", "machine.cluster.x-k8s.io"] {
            let typed = Typed::of(&format!("{kind}/Worker-1"));
            assert_eq!(typed, Typed::Machine("worker-1".to_owned()), "{kind}");
        }
        let versioned = Typed::of("machines.v1beta2.cluster.x-k8s.io/worker-1");
        assert_eq!(versioned, Typed::Machine("worker-1".to_owned()));
        let provided = |kind| Typed::Provided(kind, "x".to_owned());
        assert_eq!(Typed::of("azuremachine/x"), provided("AzureMachine"));
        assert_eq!(Typed::of("ampm/x"), provided("AzureMachinePoolMachine"));
        assert_eq!(Typed::of("machines.example.com/x"), any("x"));
    }
}
