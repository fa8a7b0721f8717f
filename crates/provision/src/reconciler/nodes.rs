//! Nodes of machines: withdraws the token of a Node that has joined, and sees to it that a Node has
//! the provider ID of its machine.

use bringup_azure::{Priority, ResourceId};
use bringup_flex::engine::{Bootstrap, nic_id};
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

use super::index::same_id;
use super::{Flex, pause};
use crate::tokens::LIFE;

/// The label by which a Node says whose it is.
pub(crate) const CLAIM_LABEL: &str = "karpenter.azure.com/node-claim";
/// When to look again at a Node of which something is not known yet.
const UNKNOWN: SignedDuration = SignedDuration::from_secs(30);
/// The scheme of our provider ids.
const SCHEME: &str = "azure-flex://";

impl<B: Bootstrap> Flex<B> {
    /// The Node's name, if there is something to be done for it.
    pub(super) fn visitor(&self, node: &Node) -> Option<String> {
        let label = node.labels().get(CLAIM_LABEL);
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        match (label, id) {
            (Some(_), None | Some("")) => Some(node.name_any()),
            (Some(_), Some(id)) if !id.starts_with(SCHEME) => Some(node.name_any()),
            (_, Some(id)) if id.starts_with(SCHEME) => {
                let mut greeted = self.greeted();
                (!greeted.contains(&node.name_any())).then(|| {
                    greeted.insert(node.name_any());
                    node.name_any()
                })
            }
            _ => None,
        }
    }

    /// Does what is to be done for a Node; when to look again.
    pub(super) async fn visit(&self, name: &str) -> Option<Timestamp> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = match nodes.get_opt(name).await {
            Ok(Some(node)) => node,
            Ok(None) => {
                self.greeted().remove(name);
                return None;
            }
            Err(error) => {
                warn!(node = name, %error, "the Node could not be read");
                return Some(later(self.clock.now(), pause(&error)));
            }
        };
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
        if id.starts_with(SCHEME) {
            return self.withdraw_token_of(&id).await;
        }
        let claim = node.labels().get(CLAIM_LABEL).cloned()?;
        let (machine, is_certain) = {
            let index = self.index();
            (index.machines_for(&claim).first().copied().cloned(), index.machines_are_listed)
        };
        let again = Some(later(self.clock.now(), UNKNOWN));
        // Whose it is cannot be told before the machines have been listed.
        let Some(machine) = machine else { return again.filter(|_| !is_certain) };
        let Some(machine) = self.store.machine(&machine).await else { return again };
        if id.is_empty() {
            self.identify(&node, &machine).await
        } else {
            self.conflict(&machine, &format!("Node {name} has the provider id {id}")).await;
            None
        }
    }

    /// The Node exists: the token is no longer needed.
    async fn withdraw_token_of(&self, provider_id: &str) -> Option<Timestamp> {
        let (uid, is_certain) = {
            let index = self.index();
            let same = |known: &&super::index::Machine| {
                known.provider_id.as_deref().is_some_and(|id| same_id(id, provider_id))
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
                // It ends by itself within the hour.
                warn!(%error, "a bootstrap token could not be withdrawn");
                Some(later(self.clock.now(), LIFE.min(SignedDuration::from_mins(5))))
            }
        }
    }

    /// A Node that says whose it is, and has no provider id: it gets one if its address is that of
    /// the machine's NIC, which it cannot choose.
    async fn identify(&self, node: &Node, machine: &AzureFlexMachine) -> Option<Timestamp> {
        let later = Some(later(self.clock.now(), UNKNOWN));
        let status = machine.status.clone().unwrap_or_default();
        let Some((place, wanted)) = status.place.zip(status.provider_id) else { return later };
        let nic: ResourceId = nic_id(&place).parse().ok()?;
        let network = bringup_flex::engine::NETWORK;
        let nic = match self.arm.resource(&nic, network, Priority::Schedule).await {
            Ok(nic) => nic,
            Err(error) => {
                warn!(%error, "the NIC of a machine could not be read");
                return later;
            }
        };
        match is_at(node, &nic) {
            Address::Same => {}
            // With a cloud provider of its own the addresses of a Node come after it has registered.
            Address::Unknown => return later,
            Address::Another => {
                let name = node.name_any();
                let what =
                    format!("Node {name} says that it is this machine, and has another address");
                self.conflict(machine, &what).await;
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
                info!(node = node.name_any(), "the Node has its provider id");
                None
            }
            Err(error) => {
                warn!(node = node.name_any(), %error, "the provider id could not be set");
                later
            }
        }
    }

    async fn conflict(&self, machine: &AzureFlexMachine, what: &str) {
        let saying = Announcement {
            warning: true,
            reason: "NodeIdentityConflict",
            action: "Identify",
            note: what,
            mark: what,
        };
        self.recorder.announce(machine, &saying, self.clock.now()).await;
    }
}

/// Whether a Node has an address of a NIC.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Same,
    Another,
    /// The Node or the NIC has no address yet: that says nothing.
    Unknown,
}

fn is_at(node: &Node, nic: &Value) -> Address {
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
        assert_eq!(is_at(&node(at("10.1.0.4")), &ours), Address::Same);
        assert_eq!(is_at(&node(at("10.9.9.9")), &ours), Address::Another);
        let hostname = json!([{ "type": "Hostname", "address": "10.9.9.9" }]);
        for early in [json!([]), hostname] {
            assert_eq!(is_at(&node(early), &ours), Address::Unknown);
        }
        assert_eq!(is_at(&Node::default(), &ours), Address::Unknown);
        for early in [nic(json!(null)), nic(json!("")), json!({})] {
            assert_eq!(is_at(&node(at("10.1.0.4")), &early), Address::Unknown);
        }
    }
}
