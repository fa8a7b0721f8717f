//! Objects that the version before stored are read by this one, and written back without loss.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use bringup_contract::flex::{FailureCause, FailureClass};
use bringup_contract::report::{CollectorState, Phase, ProvisionMode};
use bringup_contract::{Cause, Open};
use bringup_objects::flex::machine::AzureFlexMachine;
use bringup_objects::report::BootstrapReport;
use serde_json::Value;

const REPORT: &str = include_str!("stored/report.json");
const MACHINE: &str = include_str!("stored/machine.json");

#[test]
fn a_stored_report_is_read_and_words_that_are_gone_are_kept() {
    let report: BootstrapReport = serde_json::from_str(REPORT).unwrap();
    assert_eq!(report.phase(), Open::Other("Collecting".to_owned()));
    assert_eq!(report.spec.provision_mode, Some(ProvisionMode::Extension.into()));
    let status = report.status.as_ref().unwrap();
    assert_eq!(status.verdict.as_ref().unwrap().cause, Cause::BinaryMissing);
    let source = status.cse.as_ref().unwrap().code_source.as_ref();
    assert_eq!(source.unwrap().as_str(), "fragment");
    let collected: Vec<_> = status.collectors.iter().map(|one| one.state.known()).collect();
    assert_eq!(collected, [Some(CollectorState::Ok), Some(CollectorState::Disabled)]);

    let stored: Value = serde_json::from_str(REPORT).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), stored);
}

#[test]
fn a_stored_machine_is_read_and_loses_only_the_fields_that_nothing_wrote() {
    let machine: AzureFlexMachine = serde_json::from_str(MACHINE).unwrap();
    assert!(machine.spec.is_spot());
    let failure = machine.status.as_ref().unwrap().failure.as_ref().unwrap();
    assert_eq!(failure.class, Open::<FailureClass>::Other("bootstrap".to_owned()));
    assert_eq!(failure.cause, FailureCause::Node(Cause::QuotaExceeded));

    let mut stored: Value = serde_json::from_str(MACHINE).unwrap();
    for gone in ["classHash", "internalIp"] {
        stored["status"].as_object_mut().unwrap().remove(gone);
    }
    assert_eq!(serde_json::to_value(&machine).unwrap(), stored);
}

#[test]
fn a_report_without_a_phase_of_its_own_is_final() {
    let mut stored: Value = serde_json::from_str(REPORT).unwrap();
    stored.as_object_mut().unwrap().remove("status");
    let report: BootstrapReport = serde_json::from_value(stored).unwrap();
    assert_eq!(report.phase(), Phase::Final);
}
