//! The properties of a request that limits and counters depend on.

use super::Key;
use super::meter::Limit;

/// The front door counts reads, writes and deletes separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Door {
    /// GET requests.
    Reads,
    /// PUT, PATCH and POST requests.
    Writes,
    /// DELETE requests.
    Deletes,
}

/// The operation of a request: the label of its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// Reads a virtual machine with its instance view.
    GetVirtualMachine,
    /// Reads an instance of a scale set with its instance view.
    GetScaleSetInstance,
    /// Reads one extension.
    GetExtension,
    /// Lists the managed run commands of a machine.
    ListRunCommands,
    /// Requests the URLs of the serial log.
    GetBootDiagnostics,
    /// Reads the serial log itself, which is not a request to ARM.
    GetSerialLog,
    /// Reads an AKS machine.
    GetMachine,
    /// Reads a page of the activity log.
    ListActivity,
    /// Reads any other resource.
    GetResource,
    /// Lists resources, images or quotas.
    List,
    /// Reads the state of an operation.
    GetOperation,
    /// Creates, changes or deletes a resource.
    Write,
}

impl Operation {
    /// The value of a metric label.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetVirtualMachine => "get_virtual_machine",
            Self::GetScaleSetInstance => "get_scale_set_instance",
            Self::GetExtension => "get_extension",
            Self::ListRunCommands => "list_run_commands",
            Self::GetBootDiagnostics => "get_boot_diagnostics",
            Self::GetSerialLog => "get_serial_log",
            Self::GetMachine => "get_machine",
            Self::GetResource => "get_resource",
            Self::List => "list",
            Self::ListActivity => "list_activity",
            Self::GetOperation => "get_operation",
            Self::Write => "write",
        }
    }
}

/// Requests that a provider counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// Compute: reads of a virtual machine, an extension, run commands, boot diagnostics.
    LowCostGet,
    /// Compute: lists.
    HighCostGet,
    /// Compute: reads of a scale set instance.
    GetVmScaleSetVm,
    /// Compute and network: reads of an operation.
    GetOperation,
    /// Compute: creation or replacement of a virtual machine.
    PutVm,
    /// Compute: changes of a virtual machine.
    UpdateVm,
    /// Compute: deletion of a virtual machine.
    DeleteVm,
    /// Reads of AKS, whose limits are not known.
    Aks,
    /// Reads of the activity log, whose limits are not known.
    Activity,
    /// Any other write.
    Other,
}

impl Family {
    /// The prefix of the family's policies in headers and refusals.
    fn policy(self) -> Option<&'static str> {
        match self {
            Self::LowCostGet => Some("LowCostGet"),
            Self::HighCostGet => Some("HighCostGet"),
            Self::GetVmScaleSetVm => Some("GetVMScaleSetVM"),
            Self::GetOperation => Some("GetOperation"),
            Self::PutVm => Some("PutVM"),
            Self::UpdateVm => Some("UpdateVM"),
            Self::DeleteVm => Some("DeleteVM"),
            Self::Aks | Self::Activity | Self::Other => None,
        }
    }

    /// The limits for one resource and for the subscription, as documented.
    pub(super) fn limits(self) -> Option<(Limit, Limit)> {
        let ((refill, cap), (all_refill, all_cap)) = match self {
            Self::LowCostGet => ((12, 36), (8_000, 24_000)),
            // For lists, Azure documents only the subscription's limit.
            Self::HighCostGet => ((300, 900), (300, 900)),
            Self::GetVmScaleSetVm => ((12, 36), (2_000, 6_000)),
            Self::GetOperation => ((15, 45), (5_000, 15_000)),
            Self::PutVm | Self::UpdateVm | Self::DeleteVm => ((4, 12), (500, 1_500)),
            Self::Aks | Self::Activity | Self::Other => return None,
        };
        Some((Limit::per_minute(refill, cap), Limit::per_minute(all_refill, all_cap)))
    }

    /// Whether a policy, with or without its provider's name, belongs to this family.
    pub(super) fn is_policy(self, name: &str) -> bool {
        let name = name.rsplit('/').next().unwrap_or(name);
        self.policy().is_some_and(|policy| {
            let start = name.get(..policy.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(policy))
        })
    }
}

/// A request, reduced to the properties that limits and counters depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub(crate) operation: Operation,
    pub(crate) door: Door,
    pub(super) family: Family,
    /// The keys of the front door, the subscription and the resource.
    pub(super) keys: [Key; 3],
}

impl Call {
    /// A request for `resource`, whose ID may be in any case.
    pub fn new(
        operation: Operation,
        door: Door,
        family: Family,
        subscription: &str,
        resource: &str,
    ) -> Self {
        let subscription = subscription.to_ascii_lowercase();
        let keys = [
            Key::Door(subscription.clone(), door),
            Key::Subscription(subscription, family),
            Key::Resource(resource.to_ascii_lowercase(), family),
        ];
        Self { operation, door, family, keys }
    }

    pub(crate) fn door_key(&self) -> &Key {
        &self.keys[0]
    }
}
