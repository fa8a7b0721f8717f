//! Plans the steps that make the cluster match a list of machines. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Node};
use kube::ResourceExt;

use super::{
    machine::{Machine, SigningRequest},
    objects::requesting_node,
};

/// The existing objects that the stand-in created earlier.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) nodes: Vec<Node>,
    pub(crate) requests: Vec<CertificateSigningRequest>,
}

/// One step for one machine.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// Delete all objects of this name.
    Leave(String),
    /// Create the missing objects.
    Join(&'a Machine),
    /// Report the machine's state on its Node, and renew its Lease.
    Report(&'a Machine, &'a Node),
}

/// Deletions come first: a new machine may have the name of a deleted one.
pub(crate) fn plan<'a>(observed: &'a Observed, machines: &'a [Machine]) -> Vec<Step<'a>> {
    let nodes: BTreeMap<String, &Node> =
        observed.nodes.iter().map(|node| (node.name_any(), node)).collect();
    let wanted: BTreeMap<&str, &Machine> =
        machines.iter().map(|machine| (machine.name.as_str(), machine)).collect();

    let seen: BTreeSet<String> = nodes
        .keys()
        .cloned()
        .chain(observed.requests.iter().filter_map(requesting_node).map(ToOwned::to_owned))
        .collect();
    let leave = seen
        .into_iter()
        .filter(|name| {
            let machine = wanted.get(name.as_str());
            machine.is_none_or(|machine| has_lost(machine, nodes.get(name).copied()))
        })
        .map(Step::Leave);

    let stay = wanted.values().map(|machine| match nodes.get(&machine.name) {
        Some(node) if !has_lost(machine, Some(node)) => Step::Report(machine, node),
        _ => Step::Join(machine),
    });
    leave.chain(stay).collect()
}

/// Whether the Node belongs to an earlier machine with the same name, or to a machine that should have no
/// Node yet.
fn has_lost(machine: &Machine, node: Option<&Node>) -> bool {
    let Some(node) = node else { return false };
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    machine.csr == SigningRequest::Pending || provider_id != Some(machine.provider_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::{super::objects, *};
    use jiff::Timestamp;

    fn machine(name: &str, provider_id: &str, csr: SigningRequest) -> Machine {
        Machine {
            name: name.to_owned(),
            provider_id: provider_id.to_owned(),
            internal_ip: [10, 1, 0, 4].into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            capacity: BTreeMap::new(),
            allocatable: BTreeMap::new(),
            ready: super::super::Readiness::default(),
            csr,
        }
    }

    fn joined(machine: &Machine) -> Observed {
        Observed {
            nodes: vec![objects::node(machine, Timestamp::UNIX_EPOCH)],
            requests: Vec::new(),
        }
    }

    #[test]
    fn a_new_machine_joins() {
        let machines = [machine("a", "vm-1", SigningRequest::Approve)];
        let observed = Observed::default();
        assert_eq!(plan(&observed, &machines), [Step::Join(&machines[0])]);
    }

    #[test]
    fn a_new_machine_gets_a_node() {
        let machines = [machine("a", "vm-1", SigningRequest::Approve)];
        let observed = joined(&machines[0]);
        assert_eq!(plan(&observed, &machines), [Step::Report(&machines[0], &observed.nodes[0])]);
    }

    #[test]
    fn a_machine_that_is_gone_loses_its_node() {
        let observed = joined(&machine("a", "vm-1", SigningRequest::Approve));
        assert_eq!(plan(&observed, &[]), [Step::Leave("a".to_owned())]);
    }

    #[test]
    fn a_machine_that_is_gone_before_its_node_exists_leaves_nothing() {
        let observed =
            Observed { nodes: Vec::new(), requests: vec![objects::signing_request("a").unwrap()] };
        assert_eq!(plan(&observed, &[]), [Step::Leave("a".to_owned())]);
    }

    #[test]
    fn another_machine_of_the_same_name_joins_anew() {
        let observed = joined(&machine("a", "vm-1", SigningRequest::Approve));
        let machines = [machine("a", "vm-2", SigningRequest::Approve)];
        assert_eq!(
            plan(&observed, &machines),
            [Step::Leave("a".to_owned()), Step::Join(&machines[0])]
        );
    }
}
