//! Nodes of machines: deletes the bootstrap token of a Node that has joined, and sets the provider ID of a
//! Node that has none.

use bringup_azure::{Priority, ResourceId};
use bringup_flex::engine::{Bootstrap, NETWORK};
use bringup_flex::ids::{nic_id, same_provider_id};
use bringup_flex::time::later;
use bringup_objects::MANAGER;
use bringup_objects::flex::AzureFlexMachine;
use bringup_runtime::recorder::Announcement;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tracing::{info, warn};

use super::flex::Flex;
use super::index::Machine;
use super::kubernetes::pause;
use crate::tokens::LIFE;

/// The label of a Node that contains the name of its claim.
pub(crate) const CLAIM_LABEL: &str = "karpenter.azure.com/node-claim";
/// The pause before a Node is reconciled again whose machine or address is not known yet.
const UNKNOWN: SignedDuration = SignedDuration::from_secs(30);
/// The scheme of our provider IDs.
const SCHEME: &str = "azure-flex://";

impl<B: Bootstrap> Flex<B> {
    /// Whether a Node's token must be deleted or its provider ID set. Each token is deleted once.
    pub(super) fn needs_reconciling(&self, node: &Node) -> bool {
        let label = node.labels().get(CLAIM_LABEL);
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        match (label, id) {
            (Some(_), None | Some("")) => true,
            (Some(_), Some(id)) if !id.starts_with(SCHEME) => true,
            (_, Some(id)) if id.starts_with(SCHEME) => {
                self.memory().tokens_withdrawn.insert(node.name_any())
            }
            _ => false,
        }
    }

    /// Reconciles a Node. Returns when the Node is due again.
    pub(super) async fn reconcile_node(&self, name: &str) -> Option<Timestamp> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = match nodes.get_opt(name).await {
            Ok(Some(node)) => node,
            Ok(None) => {
                self.memory().tokens_withdrawn.remove(name);
                return None;
            }
            Err(error) => {
                warn!(node = name, %error, "cannot read Node");
                return Some(later(self.clock.now(), pause(&error)));
            }
        };
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
        if id.starts_with(SCHEME) {
            return self.withdraw_token(name, &id).await;
        }
        let claim = node.labels().get(CLAIM_LABEL).cloned()?;
        let (machine, is_certain) = {
            let index = self.index();
            (index.machines_for(&claim).first().copied().cloned(), index.machines_are_listed)
        };
        let again = Some(later(self.clock.now(), UNKNOWN));
        // Until the machines have been listed, an unknown machine may exist.
        let Some(machine) = machine else { return again.filter(|_| !is_certain) };
        let Ok(Some(machine)) = self.store.read(&machine).await else { return again };
        if id.is_empty() {
            self.set_provider_id(&node, &machine).await
        } else {
            let what = format!("Node {name} has the provider id {id}");
            self.announce_conflict(&machine, &what).await;
            None
        }
    }

    /// Deletes the bootstrap token of a Node's machine: the Node has joined, and no longer needs the token.
    async fn withdraw_token(&self, node: &str, provider_id: &str) -> Option<Timestamp> {
        let (uid, is_certain) = {
            let index = self.index();
            let same = |known: &&Machine| {
                known.provider_id.as_deref().is_some_and(|id| same_provider_id(id, provider_id))
            };
            let known = index.machines.values().find(same).map(|machine| machine.uid.clone());
            (known, index.machines_are_listed)
        };
        let Some(uid) = uid else {
            return Some(later(self.clock.now(), UNKNOWN)).filter(|_| !is_certain);
        };
        match self.tokens.withdraw(&uid).await {
            Ok(()) => None,
            Err(error) => {
                // The token expires within the hour.
                warn!(node, %error, "cannot delete bootstrap token");
                Some(later(self.clock.now(), LIFE.min(SignedDuration::from_mins(5))))
            }
        }
    }

    /// Sets the provider ID of a Node whose label names the claim, if the Node has an address of the
    /// machine's NIC, which a Node cannot choose.
    async fn set_provider_id(&self, node: &Node, machine: &AzureFlexMachine) -> Option<Timestamp> {
        let later = Some(later(self.clock.now(), UNKNOWN));
        let status = machine.status.clone().unwrap_or_default();
        let Some((place, wanted)) = status.place.zip(status.provider_id) else { return later };
        let nic: ResourceId = nic_id(&place).parse().ok()?;
        let nic = match self.arm.resource(&nic, NETWORK, Priority::Schedule).await {
            Ok(nic) => nic,
            Err(error) => {
                warn!(machine = machine.name_any(), %error, "cannot read NIC");
                return later;
            }
        };
        match compare_address(node, &nic) {
            Address::Same => {}
            // With an external cloud provider, a Node has addresses only after it has registered.
            Address::Unknown => return later,
            Address::Another => {
                let name = node.name_any();
                let what =
                    format!("Node {name} names the claim of this machine, and has another address");
                self.announce_conflict(machine, &what).await;
                return None;
            }
        }
        let version = node.resource_version();
        let body =
            json!({ "metadata": { "resourceVersion": version }, "spec": { "providerID": wanted } });
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let nodes: Api<Node> = Api::all(self.client.clone());
        match nodes.patch(&node.name_any(), &parameters, &Patch::Merge(&body)).await {
            Ok(_) => {
                info!(node = node.name_any(), provider_id = wanted, "provider id of Node set");
                None
            }
            Err(error) => {
                warn!(node = node.name_any(), %error, "cannot set provider id of Node");
                later
            }
        }
    }

    async fn announce_conflict(&self, machine: &AzureFlexMachine, what: &str) {
        let announcement = Announcement {
            warning: true,
            reason: "NodeIdentityConflict",
            action: "Identify",
            note: what,
            mark: what,
        };
        self.recorder.announce(machine, &announcement, self.clock.now()).await;
    }
}

/// The result of comparing a Node's addresses with those of a NIC.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Same,
    Another,
    /// The Node or the NIC has no address yet, which proves nothing.
    Unknown,
}

fn compare_address(node: &Node, nic: &Value) -> Address {
    let all = node.status.as_ref().and_then(|status| status.addresses.as_ref());
    let internal = all.into_iter().flatten().filter(|address| address.type_ == "InternalIP");
    let of_node: Vec<&str> = internal.map(|address| address.address.as_str()).collect();
    let all = nic.pointer("/properties/ipConfigurations").and_then(Value::as_array);
    let of_nic: Vec<&str> = all
        .into_iter()
        .flatten()
        .filter_map(|one| one.pointer("/properties/privateIPAddress").and_then(Value::as_str))
        .filter(|address| !address.is_empty())
        .collect();
    if of_node.is_empty() || of_nic.is_empty() {
        Address::Unknown
    } else if of_node.iter().any(|address| of_nic.contains(address)) {
        Address::Same
    } else {
        Address::Another
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_an_address_is_not_accused() {
        let node = |addresses: Value| -> Node {
            serde_json::from_value(json!({ "status": { "addresses": addresses } })).unwrap()
        };
        let nic = |address: Value| json!({ "properties": { "ipConfigurations": [{ "properties": { "privateIPAddress": address } }] } });
        let at = |address: &str| json!([{ "type": "InternalIP", "address": address }]);
        let ours = nic(json!("10.1.0.4"));
        assert_eq!(compare_address(&node(at("10.1.0.4")), &ours), Address::Same);
        assert_eq!(compare_address(&node(at("10.9.9.9")), &ours), Address::Another);
        let hostname = json!([{ "type": "Hostname", "address": "10.9.9.9" }]);
        for early in [json!([]), hostname] {
            assert_eq!(compare_address(&node(early), &ours), Address::Unknown);
        }
        assert_eq!(compare_address(&Node::default(), &ours), Address::Unknown);
        for early in [nic(json!(null)), nic(json!("")), json!({})] {
            assert_eq!(compare_address(&node(at("10.1.0.4")), &early), Address::Unknown);
        }
    }
}
