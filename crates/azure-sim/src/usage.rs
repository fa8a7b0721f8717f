//! Core quotas: usage, remaining cores, and the refusal of a VM that exceeds them.

use serde_json::json;

use crate::azure::Azure;
use crate::exchange::{ArmError, Reply};
use crate::resources::vm::Vm;
use crate::scenario::Quota;

impl Quota {
    fn counts(&self, vm: &Vm) -> bool {
        self.region.eq_ignore_ascii_case(&vm.location)
            && match self.family.to_ascii_lowercase().as_str() {
                "cores" => !vm.is_spot(),
                "lowprioritycores" => vm.is_spot(),
                family => !vm.is_spot() && vm.size.family.eq_ignore_ascii_case(family),
            }
    }

    /// The name of the quota in the error message.
    fn title(&self) -> String {
        match self.family.to_ascii_lowercase().as_str() {
            "cores" => "Total Regional Cores".to_owned(),
            "lowprioritycores" => "LowPriorityCores".to_owned(),
            _ => format!("{} Cores", self.family),
        }
    }
}

impl Azure {
    fn used(&self, quota: &Quota) -> u32 {
        self.vms.values().filter(|vm| quota.counts(vm)).map(|vm| vm.size.cores).sum()
    }

    pub(crate) fn refuse_over_quota(&self, vm: &Vm) -> Result<(), ArmError> {
        for quota in self.scenario.quotas.iter().filter(|quota| quota.counts(vm)) {
            let used = self.used(quota);
            let needed = used + vm.size.cores;
            if needed > quota.limit {
                let message = format!(
                    "Operation could not be completed as it results in exceeding approved {} quota. Additional details - Deployment Model: Resource Manager, Location: {}, Current Limit: {}, Current Usage: {used}, Additional Required: {}, (Minimum) New Limit Required: {needed}. Submit a request for Quota increase at https://aka.ms/ProdportalCRP/.",
                    quota.title(),
                    vm.location,
                    quota.limit,
                    vm.size.cores
                );
                return Err(ArmError::new(409, "OperationNotAllowed", message));
            }
        }
        Ok(())
    }

    pub(crate) fn get_usages(&self, location: &str) -> Reply {
        let items = self
            .scenario
            .quotas
            .iter()
            .filter(|quota| quota.region.eq_ignore_ascii_case(location))
            .map(|quota| {
                json!({
                    "limit": quota.limit,
                    "unit": "Count",
                    "currentValue": self.used(quota),
                    "name": { "value": quota.family, "localizedValue": quota.title() },
                })
            })
            .collect();
        Reply::list(items, None)
    }
}
