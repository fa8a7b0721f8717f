//! Tests of [`super::case`].

use bringup_contract::Open;
use bringup_diagnosis::Verdict;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Status, condition};
use bringup_objects::karpenter::NodeClaimSpec;
use bringup_objects::report::{Phase, ProvisionMode, ReportSpec, ReportVerdict};
use bringup_objects::{BootstrapReport, NodeClaim};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::case::Case;
use super::names::Subject;
use crate::failure::Exit;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn claim(uid: &str, conditions: &[(&str, Status, &str)]) -> NodeClaim {
    let mut claim = NodeClaim::new("default-x", NodeClaimSpec::default());
    claim.metadata.uid = Some(uid.to_owned());
    let status = claim.status.get_or_insert_default();
    status.conditions = conditions
        .iter()
        .map(|(kind, status, reason)| condition(kind, *status, reason, "", at(0)))
        .collect();
    claim
}

fn report(digits: &str, uid: &str, phase: Phase, cause: &str, second: i64) -> BootstrapReport {
    let mut report = BootstrapReport::new(&format!("default-x-{digits}"), ReportSpec::default());
    report.spec.target_ref.name = "default-x".to_owned();
    report.spec.target_ref.uid = uid.to_owned();
    let status = report.status.get_or_insert_default();
    status.phase = phase.into();
    status.verdict = Some(ReportVerdict { cause: Open::parse(cause), ..ReportVerdict::default() });
    status.finished_at = Some(Time(at(second)));
    report
}

fn case(claim: Option<NodeClaim>, reports: Vec<BootstrapReport>, typed: &str) -> Case {
    Case::new(Subject::claim("default-x"), claim.map(Into::into), None, reports, typed)
}

fn name(report: Option<&BootstrapReport>) -> Option<&str> {
    report.and_then(|report| report.metadata.name.as_deref())
}

#[test]
fn a_node_that_is_there_has_come_up_whatever_a_report_says() {
    let registered = claim("u", &[("Registered", Status::True, "Registered")]);
    let old = report("1", "u", Phase::Superseded, "BinaryMissing", 1);
    let known = case(Some(registered), vec![old], "default-x");
    assert_eq!((known.verdict, known.exit()), (Verdict::Succeeded, Exit::Fine));
    assert_eq!(known.cause(), None);
}

#[test]
fn what_azure_refused_and_has_accepted_since_is_under_way() {
    let mut refused = report("1", "u", Phase::Final, "QuotaExceeded", 1);
    refused.spec.provision_mode = Some(ProvisionMode::Standalone.into());
    let told = |status, reason| claim("u", &[(BOOTSTRAP_SUCCEEDED, status, reason)]);
    let judged = told(Status::False, "QuotaExceeded");
    let known = case(Some(judged), vec![refused.clone()], "default-x");
    assert_eq!((known.verdict, known.cause()), (Verdict::Failed, Some("QuotaExceeded")));
    let again = told(Status::Unknown, "Diagnosing");
    let known = case(Some(again), vec![refused], "default-x");
    assert_eq!((known.verdict, known.cause()), (Verdict::Running, None));
}

#[test]
fn a_failure_is_told_by_the_report_or_else_by_the_condition() {
    let waiting = || claim("u", &[("Registered", Status::Unknown, "NodeNotFound")]);
    let told =
        case(Some(waiting()), vec![report("1", "u", Phase::Final, "DnsFailure", 1)], "default-x");
    assert_eq!((told.cause(), told.exit()), (Some("DnsFailure"), Exit::Cause));
    let judged = claim("u", &[(BOOTSTRAP_SUCCEEDED, Status::False, "EgressBlocked")]);
    let told = case(Some(judged), Vec::new(), "default-x");
    assert_eq!((told.cause(), told.exit()), (Some("EgressBlocked"), Exit::Cause));
    let told = case(Some(waiting()), Vec::new(), "default-x");
    assert_eq!((told.verdict, told.exit()), (Verdict::Running, Exit::NoCause));
}

#[test]
fn a_failure_without_a_cause_is_11() {
    let lost = case(None, vec![report("1", "u", Phase::Lost, "Unknown", 1)], "default-x");
    assert_eq!((lost.verdict, lost.exit()), (Verdict::Failed, Exit::NoCause));
}

#[test]
fn of_several_attempts_the_newest_is_told_and_the_others_are_named() {
    let reports = vec![
        report("1", "u1", Phase::Final, "DnsFailure", 1),
        report("2", "u2", Phase::Final, "BinaryMissing", 9),
    ];
    let told = case(None, reports, "default-x");
    assert_eq!(told.cause(), Some("BinaryMissing"));
    assert_eq!(name(told.others.first()), Some("default-x-1"));
}

#[test]
fn a_claim_made_anew_does_not_inherit_the_failure_of_its_namesake() {
    let anew = claim("u2", &[("Registered", Status::Unknown, "NodeNotFound")]);
    let told =
        case(Some(anew), vec![report("1", "u1", Phase::Final, "DnsFailure", 1)], "default-x");
    assert_eq!(told.verdict, Verdict::Running);
    assert_eq!((told.report.is_none(), told.others.len()), (true, 1));
}

#[test]
fn a_report_that_is_named_is_told_even_if_there_is_a_newer_one() {
    let anew = claim("u2", &[("Registered", Status::True, "Registered")]);
    let reports = || {
        vec![
            report("1", "u1", Phase::Final, "DnsFailure", 1),
            report("2", "u0", Phase::Final, "BinaryMissing", 9),
        ]
    };
    let told = case(Some(anew), reports(), "Default-X-1");
    assert_eq!((told.cause(), told.living.is_none()), (Some("DnsFailure"), true));
    assert_eq!(case(None, reports(), "default-").cause(), Some("BinaryMissing"));
}
