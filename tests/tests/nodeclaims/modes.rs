//! Every way in which a node bootstraps, with a boot that fails.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_contract::report::ProvisionMode;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED};
use bringup_objects::report::{BootstrapReport, CollectorState, Phase};
use bringup_testbed::kubelet::{Machine, Readiness, SigningRequest, StandInKubelet};

use super::common::{ORAS_MISSING, exit_code, has_failed, message, status_and_reason};

const CUSTOM_DATA: &str = "rules: [{name: all, boot: {bootstrap: custom-data, node: never, script: {ends: {exitCode: 211, output: \"timeout: failed to run command 'oras': No such file or directory\\n+ exit 211\"}}}}]";

fn state_of(report: &BootstrapReport, collector: &str) -> Option<CollectorState> {
    let collectors = &report.status.as_ref()?.collectors;
    collectors.iter().find(|asked| asked.name == collector).and_then(|asked| asked.state.known())
}

#[tokio::test]
async fn test_13_a_scriptless_failure_without_a_console_is_unknown_before_thirteen_minutes()
-> Result<()> {
    let bed = TestBed::named("t13", CUSTOM_DATA).await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.27.0").await?;
    bed.azure.advance(Duration::from_mins(12));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "Unknown")));
    assert_eq!(status_and_reason(&object, CSE_PROVISIONED), None);
    let report = bed.report_of(&claim).await?;
    assert_eq!(report.spec.provision_mode, Some(ProvisionMode::Scriptless.into()));
    assert_eq!(state_of(&report, "virtual machine"), Some(CollectorState::Ok));
    assert_eq!(state_of(&report, "serial log"), Some(CollectorState::Disabled));
    assert_eq!(state_of(&report, "Kubernetes"), Some(CollectorState::Empty));
    Ok(())
}

#[tokio::test]
async fn a_scriptless_failure_with_a_console_has_code_cause_and_cse_condition() -> Result<()> {
    let bed = TestBed::named("console", CUSTOM_DATA).await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    let order = Order::of("202601.27.0").with_console();
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    bed.azure.advance(Duration::from_mins(6));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert_eq!(status_and_reason(&object, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    let report = bed.report_of(&claim).await?;
    assert_eq!(exit_code(&report), Some(211));
    assert_eq!(state_of(&report, "serial log"), Some(CollectorState::Ok));
    assert_eq!(bed.events(&claim).await?[0].reason.as_deref(), Some("CSEFailed"));
    Ok(())
}

#[tokio::test]
async fn test_14_a_silent_success_is_unknown_for_three_minutes_and_then_false() -> Result<()> {
    let bed = TestBed::named("t14", "rules: [{name: all, boot: {node: never}}]").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    assert_eq!(bed.karpenter.bootstrap(&claim)?, None);
    bed.claim_when(&claim, "a CSE that succeeded", |claim| {
        status_and_reason(claim, CSE_PROVISIONED) == Some(("True", "CSESucceeded"))
            && status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
    })
    .await?;
    bed.azure.advance(Duration::from_mins(4));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&object, CSE_PROVISIONED), Some(("True", "CSESucceeded")));
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "Unknown")));
    let told = message(&object, BOOTSTRAP_SUCCEEDED);
    assert!(told.starts_with("The bootstrap script succeeded and no Node came"), "{told}");
    bed.report_of(&claim).await?;
    assert_eq!(bed.events(&claim).await?[0].reason.as_deref(), Some("BootstrapFailed"));
    Ok(())
}

#[tokio::test]
async fn test_14_a_silent_success_with_a_pending_request_waits_for_its_certificate() -> Result<()> {
    let bed = TestBed::named("t14csr", "rules: [{name: all, boot: {node: never}}]").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    assert_eq!(bed.karpenter.bootstrap(&claim)?, None);
    let machine = Machine {
        name: format!("aks-{claim}"),
        provider_id: String::new(),
        internal_ip: std::net::Ipv4Addr::new(10, 1, 0, 9).into(),
        labels: std::collections::BTreeMap::new(),
        taints: Vec::new(),
        capacity: std::collections::BTreeMap::new(),
        allocatable: std::collections::BTreeMap::new(),
        ready: Readiness::Ready,
        csr: SigningRequest::Pending,
    };
    let succeeded = |claim: &bringup_objects::NodeClaim| {
        status_and_reason(claim, CSE_PROVISIONED) == Some(("True", "CSESucceeded"))
    };
    bed.claim_when(&claim, "a CSE that succeeded", succeeded).await?;
    StandInKubelet::new(bed.client.clone()).join(&machine, bed.azure.clock().now()).await?;
    bed.azure.advance(Duration::from_mins(5));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(
        status_and_reason(&object, BOOTSTRAP_SUCCEEDED),
        Some(("False", "TlsBootstrapPending"))
    );
    Ok(())
}

#[tokio::test]
async fn test_15_a_machine_of_aks_is_read_with_the_details_of_its_error() -> Result<()> {
    let bed = TestBed::named("t15", "rules: [{name: all, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, lasts: 20s, output: \"oras: command not found\\n+ exit 211\"}}}}]").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch_machine(&claim, bed.pool(), &Order::of("202601.27.0")).await?;
    bed.azure.advance(Duration::from_mins(3));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert_eq!(status_and_reason(&object, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    let report = bed.report_of(&claim).await?;
    assert_eq!(report.spec.provision_mode, Some(ProvisionMode::Machine.into()));
    assert_eq!(exit_code(&report), Some(211));
    assert_eq!(state_of(&report, "AKS machine"), Some(CollectorState::Ok));
    assert_eq!(report.spec.image_version.as_deref(), Some("202601.27.0"));
    Ok(())
}

#[tokio::test]
async fn a_standalone_claim_carries_its_error_and_its_report_belongs_to_the_class() -> Result<()> {
    let bed = TestBed::named("standalone", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    let error = "creating instance failed, VM has reported a failure when processing extension 'cse-agent-karpenter' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript'). Error message: 'failed to execute command: command terminated with exit status=1 [stdout] { \"ExitCode\": \"211\", \"Output\": \"timeout: failed to run command 'oras': No such file or directory\", \"Error\": \"\" }'";
    bed.karpenter.launch_standalone(&claim, error).await?;
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    let report = bed.report_of(&claim).await?;
    assert_eq!((exit_code(&report), report.cause()), (Some(211), Some("BinaryMissing")));
    assert_eq!(report.spec.provision_mode, Some(ProvisionMode::Standalone.into()));
    assert_eq!(
        report.spec.parent_ref.map(|parent| parent.kind),
        Some("Classstandalone".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_standalone_claim_that_is_accepted_after_a_refusal_is_judged_anew() -> Result<()> {
    let bed = TestBed::named("again", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch_standalone(&claim, "AllocationFailed: no capacity").await?;
    bed.failed_claim(&claim).await?;
    bed.report_of(&claim).await?;
    let order = Order::of("202601.27.0");
    bed.karpenter.make(&claim, bed.pool(), &order).await?;
    bed.claim_when(&claim, "no verdict", |claim| {
        status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
    })
    .await?;
    let error = bed.karpenter.bootstrap_as(&claim, &order)?.context("it should fail")?;
    bed.karpenter.report_failure(&claim, &error).await?;
    let object = bed.claim_when(&claim, "another verdict", has_failed).await?;
    assert_eq!(status_and_reason(&object, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    let reports = bed
        .reports_when("two reports, announced", |reports| {
            reports.len() == 2 && reports.iter().all(BootstrapReport::is_announced)
        })
        .await?;
    let mut told: Vec<_> = reports
        .iter()
        .map(|report| (report.spec.attempt, report.phase(), report.cause()))
        .collect();
    told.sort_unstable_by_key(|(attempt, ..)| *attempt);
    let second = (2, Phase::Final.into(), Some("BinaryMissing"));
    assert_eq!(told, [(1, Phase::Final.into(), Some("AllocationFailed")), second]);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_never_reports_is_judged_after_ten_minutes() -> Result<()> {
    let bed = TestBed::named("agent", "rules: [{name: all, boot: {agent: silent}}]").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    bed.azure.advance(Duration::from_mins(11));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(
        status_and_reason(&object, BOOTSTRAP_SUCCEEDED),
        Some(("False", "GuestAgentUnresponsive"))
    );
    Ok(())
}

#[tokio::test]
async fn a_handler_that_fails_has_no_exit_code_and_says_so() -> Result<()> {
    let text = "VMExtensionHandlerNonTransientError: The handler for VM extension type 'Microsoft.Azure.Extensions.CustomScript' has reported terminal failure for VM extension 'cse-agent-karpenter' with error message: 'failed to get configuration'";
    let scenario =
        format!("rules: [{{name: all, boot: {{script: {{handlerFails: \"{text}\"}}}}}}]");
    let bed = TestBed::named("handler", &scenario).await?;
    let _controller = bed.observe();
    let (claim, report) = super::common::fail(&bed, "a", &Order::of("202601.13.0")).await?;
    assert_eq!(
        status_and_reason(&claim, BOOTSTRAP_SUCCEEDED),
        Some(("False", "ExtensionHandlerFault"))
    );
    assert_eq!(exit_code(&report), None);
    assert!(message(&claim, CSE_PROVISIONED).starts_with("CSE failed without an exit code"));
    Ok(())
}

#[tokio::test]
async fn a_vm_that_azure_cannot_place_fails_before_any_script() -> Result<()> {
    let bed = TestBed::named("os", "rules: [{name: all, boot: {os: client-error}}]").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    bed.azure.advance(Duration::from_mins(2));
    let object = bed.failed_claim(&claim).await?;
    assert_eq!(
        status_and_reason(&object, BOOTSTRAP_SUCCEEDED),
        Some(("False", "OsProvisioningFailure"))
    );
    assert_eq!(status_and_reason(&object, CSE_PROVISIONED), None);
    Ok(())
}
