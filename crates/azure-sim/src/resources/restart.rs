//! Restarting a VM.

use crate::azure::Azure;
use crate::event::{VmEvent, VmRef};
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::not_found;
use crate::resources::vm::{Power, SOON};
use crate::route::Id;

impl Azure {
    pub(crate) fn post_restart(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| not_found(id))?;
        if vm.power != Power::Running {
            let message = format!("Cannot restart VM '{}' since it is not running.", id.name());
            return Err(ArmError::new(409, "OperationNotAllowed", message));
        }
        let (location, reference) = (vm.location.clone(), vm.reference());
        let operation = self.start_operation(Provider::Compute, id, &location);
        let restarts = VmEvent::Restarts { operation: operation.clone() };
        self.vm_after(SOON, &reference, restarts);
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    pub(crate) fn vm_restarts(&mut self, vm: &VmRef, operation: &OperationId) {
        self.vm_reboots(vm);
        self.end_operation(operation, Progress::Succeeded { output: None });
    }
}
