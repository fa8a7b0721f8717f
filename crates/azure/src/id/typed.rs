//! Typed resource IDs.

use std::fmt;
use std::str::FromStr;

use super::{IdError, Name, ResourceId};

pub(super) const COMPUTE: &str = "Microsoft.Compute";
const AKS: &str = "Microsoft.ContainerService";

/// The ID of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualMachineId {
    /// The subscription of the VM.
    pub subscription: Name,
    /// The resource group of the VM.
    pub resource_group: Name,
    /// The name of the VM.
    pub name: Name,
}

/// The ID of an instance of a scale set in uniform orchestration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaleSetInstanceId {
    /// The subscription of the scale set.
    pub subscription: Name,
    /// The resource group of the scale set.
    pub resource_group: Name,
    /// The name of the scale set.
    pub scale_set: Name,
    /// The number of the instance in the scale set.
    pub instance: Name,
}

/// The ID of an AKS machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineId {
    /// The subscription of the AKS cluster.
    pub subscription: Name,
    /// The resource group of the AKS cluster, which is not that of the machine's VM.
    pub resource_group: Name,
    /// The name of the AKS cluster.
    pub cluster: Name,
    /// The agent pool of the machine.
    pub pool: Name,
    /// The name of the machine.
    pub name: Name,
}

/// The VM or scale set instance that a Node runs on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceId {
    /// A single virtual machine.
    VirtualMachine(VirtualMachineId),
    /// An instance of a scale set.
    ScaleSetInstance(ScaleSetInstanceId),
}

impl From<&VirtualMachineId> for ResourceId {
    fn from(id: &VirtualMachineId) -> Self {
        Self::new(&id.subscription, &id.resource_group, COMPUTE, &[("virtualMachines", &id.name)])
    }
}

impl From<&ScaleSetInstanceId> for ResourceId {
    fn from(id: &ScaleSetInstanceId) -> Self {
        Self::new(
            &id.subscription,
            &id.resource_group,
            COMPUTE,
            &[("virtualMachineScaleSets", &id.scale_set), ("virtualMachines", &id.instance)],
        )
    }
}

impl From<&MachineId> for ResourceId {
    fn from(id: &MachineId) -> Self {
        Self::new(
            &id.subscription,
            &id.resource_group,
            AKS,
            &[("managedClusters", &id.cluster), ("agentPools", &id.pool), ("machines", &id.name)],
        )
    }
}

impl From<&InstanceId> for ResourceId {
    fn from(id: &InstanceId) -> Self {
        match id {
            InstanceId::VirtualMachine(id) => id.into(),
            InstanceId::ScaleSetInstance(id) => id.into(),
        }
    }
}

impl From<VirtualMachineId> for InstanceId {
    fn from(id: VirtualMachineId) -> Self {
        Self::VirtualMachine(id)
    }
}

impl From<ScaleSetInstanceId> for InstanceId {
    fn from(id: ScaleSetInstanceId) -> Self {
        Self::ScaleSetInstance(id)
    }
}

fn other(id: &ResourceId, expected: &'static str) -> IdError {
    IdError::OtherType { id: id.to_string(), found: id.kind(), expected }
}

impl TryFrom<&ResourceId> for VirtualMachineId {
    type Error = IdError;

    fn try_from(id: &ResourceId) -> Result<Self, IdError> {
        let [name] = id
            .names(COMPUTE, ["virtualMachines"])
            .ok_or_else(|| other(id, "Microsoft.Compute/virtualMachines"))?;
        Ok(Self {
            subscription: id.subscription.clone(),
            resource_group: id.resource_group.clone(),
            name: name.clone(),
        })
    }
}

impl TryFrom<&ResourceId> for ScaleSetInstanceId {
    type Error = IdError;

    fn try_from(id: &ResourceId) -> Result<Self, IdError> {
        let [scale_set, instance] =
            id.names(COMPUTE, ["virtualMachineScaleSets", "virtualMachines"]).ok_or_else(|| {
                other(id, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines")
            })?;
        Ok(Self {
            subscription: id.subscription.clone(),
            resource_group: id.resource_group.clone(),
            scale_set: scale_set.clone(),
            instance: instance.clone(),
        })
    }
}

impl TryFrom<&ResourceId> for MachineId {
    type Error = IdError;

    fn try_from(id: &ResourceId) -> Result<Self, IdError> {
        let [cluster, pool, name] =
            id.names(AKS, ["managedClusters", "agentPools", "machines"]).ok_or_else(|| {
                other(id, "Microsoft.ContainerService/managedClusters/agentPools/machines")
            })?;
        Ok(Self {
            subscription: id.subscription.clone(),
            resource_group: id.resource_group.clone(),
            cluster: cluster.clone(),
            pool: pool.clone(),
            name: name.clone(),
        })
    }
}

impl TryFrom<&ResourceId> for InstanceId {
    type Error = IdError;

    fn try_from(id: &ResourceId) -> Result<Self, IdError> {
        VirtualMachineId::try_from(id)
            .map(Self::from)
            .or_else(|_| ScaleSetInstanceId::try_from(id).map(Self::from))
            .map_err(|_| other(id, "virtual machine or an instance of a scale set"))
    }
}

/// Parsing and formatting, by way of [`ResourceId`], for all typed IDs.
macro_rules! as_text {
    ($($id:ty),*) => {$(
        impl FromStr for $id {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(&text.parse::<ResourceId>()?)
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                ResourceId::from(self).fmt(formatter)
            }
        }
    )*};
}

as_text!(VirtualMachineId, ScaleSetInstanceId, MachineId, InstanceId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_case_and_refused_when_they_are_of_something_else() {
        let group = "/subscriptions/s/resourceGroups/g/providers";
        let vm = format!("{group}/Microsoft.Compute/virtualMachines/a");
        let instance =
            format!("{group}/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/0");
        let machine =
            format!("{group}/Microsoft.ContainerService/managedClusters/c/agentPools/p/machines/m");
        assert_eq!(vm.parse::<VirtualMachineId>().unwrap().to_string(), vm);
        assert_eq!(instance.parse::<ScaleSetInstanceId>().unwrap().to_string(), instance);
        assert_eq!(machine.parse::<MachineId>().unwrap().to_string(), machine);
        assert_eq!(
            vm.to_lowercase().parse::<VirtualMachineId>().unwrap(),
            vm.parse().unwrap(),
            "ids compare without regard to case"
        );
        let refused = instance.parse::<VirtualMachineId>().unwrap_err().to_string();
        assert!(refused.contains("virtualMachineScaleSets/virtualMachines, not of a"), "{refused}");
        assert!(machine.parse::<InstanceId>().is_err());
        assert!(matches!(vm.parse(), Ok(InstanceId::VirtualMachine(_))));
        assert!(matches!(instance.parse(), Ok(InstanceId::ScaleSetInstance(_))));
    }
}
