//! Typed reads.

use std::collections::HashSet;

use azure_core::http::{Method, Url};
use jiff::Timestamp;
use serde_json::Value;

use super::Arm;
use super::exchange::Ask;
use crate::budget::{Call, Door, Family, Operation};
use crate::error::ArmError;
use crate::id::{InstanceId, MachineId, Name, ResourceId, ScaleSetInstanceId, VirtualMachineId};
use crate::model::{
    ActivityEntry, ActivityLog, BootDiagnosticsAddresses, Extension, Machine, RunCommand,
    VirtualMachine,
};
use crate::reads::Turn;

pub(super) const COMPUTE_VERSION: &str = "2024-11-01";
const AKS_VERSION: &str = "2025-09-02-preview";
const ACTIVITY_VERSION: &str = "2015-04-01";
const GROUPS_VERSION: &str = "2021-04-01";

/// The most pages of a list. A page has up to 200 entries; reading more would use too much of the budget.
const MOST_PAGES: usize = 25;

impl Arm {
    /// Reads a virtual machine with its instance view, including agent and extensions.
    pub async fn virtual_machine(
        &self,
        id: &VirtualMachineId,
        turn: impl Into<Turn>,
    ) -> Result<VirtualMachine, ArmError> {
        let raw = self
            .get(Get {
                attempted: format!("read virtual machine {}", id.name),
                operation: Operation::GetVirtualMachine,
                family: Family::LowCostGet,
                limited: &id.into(),
                below: String::new(),
                query: &[("$expand", "instanceView"), ("api-version", COMPUTE_VERSION)],
                turn: turn.into(),
            })
            .await?;
        Ok(VirtualMachine::of(raw))
    }

    /// Reads an instance of a scale set with its instance view.
    pub async fn scale_set_instance(
        &self,
        id: &ScaleSetInstanceId,
        turn: impl Into<Turn>,
    ) -> Result<VirtualMachine, ArmError> {
        let raw = self
            .get(Get {
                attempted: format!("read instance {} of scale set {}", id.instance, id.scale_set),
                operation: Operation::GetScaleSetInstance,
                family: Family::GetVmScaleSetVm,
                limited: &id.into(),
                below: String::new(),
                query: &[("$expand", "instanceView"), ("api-version", COMPUTE_VERSION)],
                turn: turn.into(),
            })
            .await?;
        Ok(VirtualMachine::of(raw))
    }

    /// Reads the VM or scale set instance of a Node, with its instance view.
    pub async fn instance(
        &self,
        id: &InstanceId,
        turn: impl Into<Turn>,
    ) -> Result<VirtualMachine, ArmError> {
        match id {
            InstanceId::VirtualMachine(id) => self.virtual_machine(id, turn).await,
            InstanceId::ScaleSetInstance(id) => self.scale_set_instance(id, turn).await,
        }
    }

    /// Waits until Azure refuses reads of an instance until later than `than`, and returns the new end of the
    /// refusal.
    pub async fn refused_beyond(&self, id: &InstanceId, than: Timestamp) -> Timestamp {
        let (operation, family) = match id {
            InstanceId::VirtualMachine(_) => (Operation::GetVirtualMachine, Family::LowCostGet),
            InstanceId::ScaleSetInstance(_) => {
                (Operation::GetScaleSetInstance, Family::GetVmScaleSetVm)
            }
        };
        let id = ResourceId::from(id);
        let subscription = id.subscription().as_str();
        let call = Call::new(operation, Door::Reads, family, subscription, &id.to_string());
        self.reads.refused_beyond(&call, than).await
    }

    /// Reads one extension with its own instance view.
    pub async fn extension(
        &self,
        machine: &VirtualMachineId,
        name: &Name,
        turn: impl Into<Turn>,
    ) -> Result<Extension, ArmError> {
        let raw = self
            .get(Get {
                attempted: format!("read extension {name} of virtual machine {}", machine.name),
                operation: Operation::GetExtension,
                family: Family::LowCostGet,
                limited: &machine.into(),
                below: format!("/extensions/{}", name.encoded()),
                query: &[("$expand", "instanceView"), ("api-version", COMPUTE_VERSION)],
                turn: turn.into(),
            })
            .await?;
        Ok(Extension::of_resource(&raw))
    }

    /// Lists the managed run commands of a machine with their output. Sends one request, so a very long list
    /// is incomplete.
    pub async fn run_commands(
        &self,
        id: &InstanceId,
        turn: impl Into<Turn>,
    ) -> Result<Vec<RunCommand>, ArmError> {
        let limited = ResourceId::from(id);
        let family = match id {
            InstanceId::VirtualMachine(_) => Family::LowCostGet,
            InstanceId::ScaleSetInstance(_) => Family::GetVmScaleSetVm,
        };
        let raw = self
            .get(Get {
                attempted: format!("list the run commands of {}", limited.name()),
                operation: Operation::ListRunCommands,
                family,
                limited: &limited,
                below: "/runCommands".to_owned(),
                query: &[("$expand", "instanceView"), ("api-version", COMPUTE_VERSION)],
                turn: turn.into(),
            })
            .await?;
        Ok(RunCommand::all(&raw))
    }

    /// Reads an AKS machine.
    pub async fn machine(
        &self,
        id: &MachineId,
        turn: impl Into<Turn>,
    ) -> Result<Machine, ArmError> {
        let raw = self
            .get(Get {
                attempted: format!("read AKS machine {} of pool {}", id.name, id.pool),
                operation: Operation::GetMachine,
                family: Family::Aks,
                limited: &id.into(),
                below: String::new(),
                query: &[("api-version", AKS_VERSION)],
                turn: turn.into(),
            })
            .await?;
        Ok(Machine::of(raw))
    }

    /// Requests URLs of the serial log and the screenshot that are valid for `minutes` (1 to 1440).
    ///
    /// The request is a POST, which the role Reader does not allow. Azure refuses it if boot diagnostics are
    /// disabled.
    pub async fn boot_diagnostics(
        &self,
        id: &InstanceId,
        minutes: u16,
        turn: impl Into<Turn>,
    ) -> Result<BootDiagnosticsAddresses, ArmError> {
        let id = ResourceId::from(id);
        let minutes = minutes.clamp(1, 1440).to_string();
        let path = format!("{}/retrieveBootDiagnosticsData", id.url_path());
        let query =
            [("sasUriExpirationTimeInMinutes", minutes.as_str()), ("api-version", COMPUTE_VERSION)];
        let answer = self
            .exchange(Ask {
                attempted: format!("ask for the boot diagnostics of {}", id.name()),
                call: Call::new(
                    Operation::GetBootDiagnostics,
                    Door::Writes,
                    Family::LowCostGet,
                    id.subscription().as_str(),
                    &id.to_string(),
                ),
                turn: turn.into(),
                method: Method::Post,
                url: self.url(&path, &query),
                body: None,
            })
            .await?;
        let (attempted, status) = (answer.attempted.clone(), answer.status);
        let addresses = BootDiagnosticsAddresses::of(&answer.object()?);
        let all = [&addresses.serial_log, &addresses.screenshot];
        if all.into_iter().flatten().all(|address| self.endpoint.admits_blob(address.url())) {
            return Ok(addresses);
        }
        let what = "an address outside Azure's storage: allow its host with --azure-storage-suffix";
        Err(ArmError::malformed(attempted, status, what, None))
    }

    /// Reads the activity log's entries for a resource group between two times. Entries appear 3 to 20
    /// minutes late. Each page is one request.
    pub async fn activity_log(
        &self,
        subscription: &Name,
        resource_group: &Name,
        from: Timestamp,
        to: Timestamp,
        turn: impl Into<Turn>,
    ) -> Result<ActivityLog, ArmError> {
        let turn = turn.into();
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.Insights/eventtypes/management/values",
            subscription.encoded()
        );
        let filter = format!(
            "eventTimestamp ge '{from}' and eventTimestamp le '{to}' and resourceGroupName eq '{}'",
            resource_group.as_str().replace('\'', "''")
        );
        let first = self.url(&path, &[("api-version", ACTIVITY_VERSION), ("$filter", &filter)]);
        let call = Call::new(
            Operation::ListActivity,
            Door::Reads,
            Family::Activity,
            subscription.as_str(),
            resource_group.as_str(),
        );
        let attempted = format!("read the activity log of resource group {resource_group}");
        let (values, complete) = self.pages(first, &attempted, &call, turn).await?;
        Ok(ActivityLog { entries: values.iter().map(ActivityEntry::of).collect(), complete })
    }

    /// Lists all resources of a type, such as `Microsoft.Network/networkInterfaces`, in a resource group.
    /// Returns the untyped resources, and whether the list is complete. Lists are up to half a minute late.
    pub async fn list(
        &self,
        subscription: &Name,
        resource_group: &Name,
        kind: &str,
        api_version: &str,
        turn: impl Into<Turn>,
    ) -> Result<(Vec<Value>, bool), ArmError> {
        let path = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{kind}",
            subscription.encoded(),
            resource_group.encoded()
        );
        let family = if kind.starts_with("Microsoft.Compute/") {
            Family::HighCostGet
        } else {
            Family::Other
        };
        let limited = format!("{resource_group}/{kind}");
        let call = Call::new(Operation::List, Door::Reads, family, subscription.as_str(), &limited);
        let attempted = format!("list {kind} in resource group {resource_group}");
        let first = self.url(&path, &[("api-version", api_version)]);
        self.pages(first, &attempted, &call, turn.into()).await
    }

    /// Reads any resource, untyped.
    pub async fn resource(
        &self,
        id: &ResourceId,
        api_version: &str,
        turn: impl Into<Turn>,
    ) -> Result<Value, ArmError> {
        self.get(Get {
            attempted: format!("read {}", id.kind()),
            operation: Operation::GetResource,
            family: Family::Other,
            limited: id,
            below: String::new(),
            query: &[("api-version", api_version)],
            turn: turn.into(),
        })
        .await
    }

    /// Reads the region of a resource group, which proves that the group exists.
    pub async fn resource_group(
        &self,
        subscription: &Name,
        group: &Name,
        turn: impl Into<Turn>,
    ) -> Result<Value, ArmError> {
        let path =
            format!("/subscriptions/{}/resourceGroups/{}", subscription.encoded(), group.encoded());
        let limited = group.as_str();
        let (operation, family) = (Operation::GetResource, Family::Other);
        let call = Call::new(operation, Door::Reads, family, subscription.as_str(), limited);
        let ask = Ask {
            attempted: format!("read resource group {group}"),
            call,
            turn: turn.into(),
            method: Method::Get,
            url: self.url(&path, &[("api-version", GROUPS_VERSION)]),
            body: None,
        };
        self.exchange(ask).await?.object()
    }

    /// Reads the quotas of a region, untyped.
    pub async fn usages(
        &self,
        subscription: &Name,
        region: &Name,
        turn: impl Into<Turn>,
    ) -> Result<Vec<Value>, ArmError> {
        let below = format!("locations/{}/usages", region.encoded());
        self.of_compute(subscription, &below, &format!("quotas of {region}"), turn.into()).await
    }

    /// Lists the versions of a marketplace image, newest first, as far as Azure lists them.
    pub async fn image_versions(
        &self,
        subscription: &Name,
        region: &Name,
        [publisher, offer, sku]: [&Name; 3],
        turn: impl Into<Turn>,
    ) -> Result<Vec<String>, ArmError> {
        let below = format!(
            "locations/{}/publishers/{}/artifacttypes/vmimage/offers/{}/skus/{}/versions",
            region.encoded(),
            publisher.encoded(),
            offer.encoded(),
            sku.encoded()
        );
        let what = format!("versions of image {publisher} {offer} {sku}");
        let found = self.of_compute(subscription, &below, &what, turn.into()).await?;
        let mut versions: Vec<String> =
            found.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
        versions.sort_by_cached_key(|version| std::cmp::Reverse(numbers(version)));
        Ok(versions)
    }

    /// Reads a list of the Compute provider for a subscription.
    async fn of_compute(
        &self,
        subscription: &Name,
        below: &str,
        what: &str,
        turn: Turn,
    ) -> Result<Vec<Value>, ArmError> {
        let encoded = subscription.encoded();
        let path = format!("/subscriptions/{encoded}/providers/Microsoft.Compute/{below}");
        let (operation, family) = (Operation::List, Family::HighCostGet);
        let call = Call::new(operation, Door::Reads, family, subscription.as_str(), below);
        let ask = Ask {
            attempted: format!("list {what}"),
            call,
            turn,
            method: Method::Get,
            url: self.url(&path, &[("api-version", COMPUTE_VERSION)]),
            body: None,
        };
        // Image versions are a bare array; quotas are wrapped in an object.
        let mut answer = self.exchange(ask).await?.json()?;
        let list = answer.get_mut("value").map(Value::take).unwrap_or(answer);
        Ok(match list {
            Value::Array(found) => found,
            _ => Vec::new(),
        })
    }

    /// Reads all pages of a list, one request each. Returns the values, and whether the last page was read.
    async fn pages(
        &self,
        first: Url,
        attempted: &str,
        call: &Call,
        turn: Turn,
    ) -> Result<(Vec<Value>, bool), ArmError> {
        let mut next = Some(first);
        let (mut seen, mut values) = (HashSet::new(), Vec::new());
        while let Some(url) = next {
            if seen.len() == MOST_PAGES || !seen.insert(url.clone()) {
                return Ok((values, false));
            }
            let (attempted, call) = (attempted.to_owned(), call.clone());
            let ask = Ask { attempted, call, turn, method: Method::Get, url, body: None };
            let mut page = self.exchange(ask).await?.object()?;
            if let Some(Value::Array(found)) = page.get_mut("value").map(Value::take) {
                values.extend(found);
            }
            next = match page.get("nextLink").and_then(Value::as_str) {
                None | Some("") => None,
                Some(link) => match Url::parse(link).ok().filter(|url| self.endpoint.admits(url)) {
                    Some(url) => Some(url),
                    // The link leads to another host, so no further page is read.
                    None => return Ok((values, false)),
                },
            };
        }
        Ok((values, true))
    }

    async fn get(&self, get: Get<'_>) -> Result<Value, ArmError> {
        let Get { attempted, operation, family, limited, below, query, turn } = get;
        let path = format!("{}{below}", limited.url_path());
        let subscription = limited.subscription().as_str();
        let call = Call::new(operation, Door::Reads, family, subscription, &limited.to_string());
        let url = self.url(&path, query);
        let ask = Ask { attempted, call, turn, method: Method::Get, url, body: None };
        self.exchange(ask).await?.object()
    }
}

/// A version as numbers, for comparisons.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}

struct Get<'a> {
    attempted: String,
    operation: Operation,
    family: Family,
    /// The resource to whose limits the request counts.
    limited: &'a ResourceId,
    /// The path below the resource; empty for the resource itself.
    below: String,
    query: &'a [(&'a str, &'a str)],
    turn: Turn,
}
