//! The `Ready` condition of a machine, computed from the rest of its status.

use bringup_objects::condition::{Condition, Status, condition, find, settle};
use bringup_objects::flex::machine::{FlexMachineStatus, Phase};
use jiff::Timestamp;

/// The condition's type: the VM runs.
pub const READY: &str = "Ready";

/// The conditions of a machine. Conditions from other writers stay, and the transition time changes only with
/// the status.
pub fn conditions(status: &FlexMachineStatus, now: Timestamp) -> Vec<Condition> {
    let (word, reason, message) = match (&status.failure, status.phase) {
        (_, Phase::Running) => (Status::True, READY, ""),
        (Some(failure), _) => (Status::False, failure.cause.as_str(), failure.message.as_str()),
        (None, phase) if phase.is_cleaning() => (Status::False, "Deleting", ""),
        (None, _) => (Status::Unknown, "Provisioning", ""),
    };
    let wanted = condition(READY, word, reason, message, now);
    let ready = settle(wanted, find(&status.conditions, READY));
    let others = status.conditions.iter().filter(|one| one.type_ != READY);
    others.cloned().chain([ready]).collect()
}

#[cfg(test)]
mod tests {
    use bringup_contract::flex::FailureCause;
    use bringup_objects::flex::machine::Failure;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_foreign_resource_is_told_by_the_condition_and_what_runs_is_ready() {
        let failure = Failure {
            cause: FailureCause::ForeignResource.into(),
            message: "NIC x".to_owned(),
            ..Failure::default()
        };
        let mut status = FlexMachineStatus {
            phase: Phase::CleanNic,
            failure: Some(failure),
            ..FlexMachineStatus::default()
        };
        status.conditions = conditions(&status, at(1));
        let ready = find(&status.conditions, READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ForeignResource"));
        assert_eq!(ready.message, "NIC x");
        status.phase = Phase::Gone;
        let later = conditions(&status, at(9));
        assert_eq!(later, status.conditions, "nothing has changed");
        status.phase = Phase::Running;
        let up = conditions(&status, at(9));
        assert_eq!((up.len(), up[0].status.as_str()), (1, "True"));
    }
}
