//! Verdicts on nodes that fail, and on nodes that do not.

use std::time::Duration;

use anyhow::Result;
use bringup_contract::report::ProvisionMode;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED};
use bringup_testbed::wait::until_object;

use super::common::{
    ORAS_MISSING, conditions, confidence, constant, every_script, exit_code, fail, message,
    status_and_reason,
};

#[tokio::test]
async fn test_01_a_failed_cse_is_on_the_claim_in_the_event_and_in_the_report() -> Result<()> {
    let bed = TestBed::named("t01", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.27.0")).await?;

    assert_eq!(status_and_reason(&claim, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    assert_eq!(status_and_reason(&claim, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    let place = "Report bringup-t01/t01-a-";
    let told = message(&claim, CSE_PROVISIONED);
    let begins = "CSE exited with code 211 (ERR_ORAS_PULL_NETWORK_TIMEOUT): ";
    assert!(told.starts_with(begins), "{told}");
    assert!(told.contains("Cause: BinaryMissing; the code is misleading"), "{told}");
    assert!(told.contains(place), "{told}");
    let told = message(&claim, BOOTSTRAP_SUCCEEDED);
    assert!(told.contains("failed to run command 'oras': No such file or directory"), "{told}");
    assert!(told.contains("owner: image owner") && told.contains(place), "{told}");

    assert_eq!((report.cause(), exit_code(&report)), (Some("BinaryMissing"), Some(211)));
    let owner = &report.metadata.owner_references.as_ref().expect("the pool owns it")[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("NodePool", "t01"));
    assert_eq!(report.spec.image_version.as_deref(), Some("202601.27.0"));
    assert_eq!(report.spec.vm_size.as_deref(), Some("Standard_D4s_v5"));
    assert_eq!(report.spec.provision_mode, Some(ProvisionMode::Extension.into()));

    let events = bed.events("t01-a").await?;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason.as_deref(), Some("CSEFailed"));
    assert_eq!(events[0].type_.as_deref(), Some("Warning"));
    let note = events[0].note.as_deref().unwrap_or_default();
    let begins = "CSE exited with code 211 on node aks-t01-a: ERR_ORAS_PULL_NETWORK_TIMEOUT; cause BinaryMissing";
    assert!(note.starts_with(begins), "{note}");
    assert_eq!(bed.events("t01").await?.len(), 1, "the pool has one too");
    Ok(())
}

#[tokio::test]
async fn the_scripts_own_sentence_is_on_the_claim_in_the_event_and_in_the_report_that_outlives_both()
-> Result<()> {
    const SENTENCE: &str = "failed to retrieve refresh token for oras login";
    let script = format!(
        "{{exitCode: 211, outerExitCode: 1, output: \"+ oras_login\\n{SENTENCE}\\n+ return 211\\n+ exit 211\"}}"
    );
    let bed = TestBed::named("said", &every_script(&script)).await?;
    let _controller = bed.observe();
    let (claim, _) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    let name = bed.claim_name("a");
    let told = message(&claim, CSE_PROVISIONED);
    let begins = format!("CSE exited with code 211 (ERR_ORAS_PULL_NETWORK_TIMEOUT): {SENTENCE}.");
    assert!(told.starts_with(&begins), "{told}");
    let told = message(&claim, BOOTSTRAP_SUCCEEDED);
    assert!(told.contains(SENTENCE), "{told}");
    let events = bed.events(&name).await?;
    let note = events[0].note.as_deref().unwrap_or_default();
    assert!(note.contains(SENTENCE), "{note}");

    bed.karpenter.clean_up(&name).await?;
    until_object(bed.claims(), &name, "the claim's end", |claim| claim.is_none()).await?;
    let kept = bed.report_of(&name).await?;
    let status = kept.status.expect("the report is whole");
    let root = status.root_evidence.expect("the report has a proof");
    assert_eq!(root.line, SENTENCE);
    Ok(())
}

#[tokio::test]
async fn test_02_the_inner_code_beats_the_outer_one() -> Result<()> {
    let script = "{exitCode: 50, outerExitCode: 1, output: \"curl: (28) Connection timed out after 10001 milliseconds\\n+ exit 50\"}";
    let bed = TestBed::named("t02", &every_script(script)).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    assert_eq!(exit_code(&report), Some(50));
    let outer = report.status.as_ref().and_then(|status| status.cse.as_ref()?.outer_status);
    assert_eq!(outer, Some(1));
    assert!(message(&claim, CSE_PROVISIONED).starts_with("CSE exited with code 50 ("));
    Ok(())
}

#[tokio::test]
async fn test_03_both_formats_of_the_handler_are_read() -> Result<()> {
    let bed = TestBed::named("t03", &format!(
        "rules: [{{name: old, when: {{namePrefix: aks-t03-old}}, boot: {{handler: 2.1.10, {script}}}}}, {{name: new, boot: {{handler: 2.1.19, {script}}}}}]",
        script = "script: {ends: {exitCode: 211, outerExitCode: 1, output: \"oras: command not found\\n+ exit 211\"}}"
    )).await?;
    let _controller = bed.observe();
    for (name, version) in [("old", "2.1.10"), ("new", "2.1.19")] {
        let (_, report) = fail(&bed, name, &Order::of("202601.27.0")).await?;
        assert_eq!((exit_code(&report), report.cause()), (Some(211), Some("BinaryMissing")));
        let cse = report.status.and_then(|status| status.cse).expect("the CSE has failed");
        assert_eq!(cse.handler_version.as_deref(), Some(version));
    }
    Ok(())
}

#[tokio::test]
async fn test_04_polluted_output_leaves_the_outer_code_and_no_high_confidence() -> Result<()> {
    let script =
        "{exitCode: 211, outerExitCode: 1, json: absent, output: \"something went wrong\"}";
    let bed = TestBed::named("t04", &every_script(script)).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    assert_eq!(exit_code(&report), Some(1));
    assert_ne!(confidence(&report), "high");
    assert_eq!(status_and_reason(&claim, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    Ok(())
}

#[tokio::test]
async fn test_05_a_result_without_its_head_has_no_invented_code() -> Result<()> {
    let script = "{exitCode: 211, outerExitCode: 1, json: head-cut, output: \"timeout: failed to run command 'oras': No such file or directory\"}";
    let bed = TestBed::named("t05", &every_script(script)).await?;
    let _controller = bed.observe();
    let (_, report) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    assert_eq!(report.cause(), Some("BinaryMissing"));
    assert!(exit_code(&report).is_none_or(|code| code == 211), "{:?}", exit_code(&report));
    Ok(())
}

#[tokio::test]
async fn test_06_a_launcher_that_fails_fast_is_a_rejected_configuration() -> Result<()> {
    let text = "failed to read provision.json: open /var/log/azure/aks/provision.json: no such file or directory. One reason could be that AKSNodeConfig is not properly set.";
    let script = format!("{{exitCode: 1, json: absent, stderr: \"{text}\"}}");
    let bed = TestBed::named("t06", &every_script(&script)).await?;
    let _controller = bed.observe();
    let (_, report) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    assert_eq!(report.cause(), Some("ConfigRejected"));
    Ok(())
}

#[tokio::test]
async fn test_07_windows_is_read_with_its_own_codes() -> Result<()> {
    let script = "{exitCode: 34, name: WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE, output: \"Unable to connect to the remote server\"}";
    let bed = TestBed::named("t07", &every_script(script)).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.13.0").windows()).await?;
    assert_eq!(exit_code(&report), Some(34));
    assert_eq!(report.spec.os.as_deref(), Some("windows"));
    let told = message(&claim, CSE_PROVISIONED);
    assert!(told.starts_with("CSE exited with code 34 (WINDOWS_CSE_ERROR"), "{told}");
    Ok(())
}

#[tokio::test]
async fn test_08_an_unknown_code_is_a_number_without_a_name() -> Result<()> {
    let script = "{exitCode: 199, outerExitCode: 1, output: \"nobody knows\"}";
    let bed = TestBed::named("t08", &every_script(script)).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    assert_eq!((exit_code(&report), constant(&report)), (Some(199), None));
    let told = message(&claim, CSE_PROVISIONED);
    let expected = "CSE exited with code 199: nobody knows. The code is not known.";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(status_and_reason(&claim, BOOTSTRAP_SUCCEEDED), Some(("False", "Unknown")));
    Ok(())
}

#[tokio::test]
async fn test_09_a_code_that_was_booked_twice_has_both_names_and_low_confidence() -> Result<()> {
    let script = "{exitCode: 231, outerExitCode: 1, output: \"+ exit 231\"}";
    let bed = TestBed::named("t09", &every_script(script)).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202603.05.0")).await?;
    assert_eq!((exit_code(&report), constant(&report)), (Some(231), None));
    assert_eq!(confidence(&report), "low");
    let told = message(&claim, CSE_PROVISIONED);
    for name in ["ERR_IMDS_FETCH_FAILED", "ERR_ORAS_PULL_SYSEXT_FAIL"] {
        assert!(told.contains(name), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn test_10_the_date_of_the_image_selects_the_meaning() -> Result<()> {
    let script = "{exitCode: 231, outerExitCode: 1, output: \"+ exit 231\"}";
    let bed = TestBed::named("t10", &every_script(script)).await?;
    let _controller = bed.observe();
    for (name, image, meaning) in [
        ("imds", "202602.01.0", "ERR_IMDS_FETCH_FAILED"),
        ("sysext", "202605.11.0", "ERR_ORAS_PULL_SYSEXT_FAIL"),
    ] {
        let (_, report) = fail(&bed, name, &Order::of(image)).await?;
        assert_eq!(constant(&report), Some(meaning), "{image}");
    }
    Ok(())
}

#[tokio::test]
async fn test_11_a_missing_oras_overrules_211_however_the_shell_words_it() -> Result<()> {
    let bed = TestBed::named("t11", "rules: [
        {name: timeout, when: {namePrefix: aks-t11-timeout}, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, output: \"timeout: failed to run command 'oras': No such file or directory\\n+ exit 211\"}}}},
        {name: bash, when: {namePrefix: aks-t11-bash}, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, output: \"cse_helpers.sh: line 12: oras: command not found\\n+ exit 211\"}}}},
        {name: real, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, output: \"Error: Get https://registry.azurecr.io/v2/: dial tcp 10.0.0.4:443: i/o timeout\\n+ exit 211\"}}}}]").await?;
    let _controller = bed.observe();
    for (name, cause) in
        [("timeout", "BinaryMissing"), ("bash", "BinaryMissing"), ("real", "RegistryUnreachable")]
    {
        let (claim, report) = fail(&bed, name, &Order::of("202601.27.0")).await?;
        assert_eq!((exit_code(&report), report.cause()), (Some(211), Some(cause)));
        assert_eq!(status_and_reason(&claim, CSE_PROVISIONED), Some(("False", "CSEFailed")));
        let verdict = report.status.and_then(|status| status.verdict).expect("there is a verdict");
        if cause == "BinaryMissing" {
            assert!(verdict.overrules_code);
        }
    }
    Ok(())
}

#[tokio::test]
async fn test_12_a_healthy_node_gets_no_failure_and_both_conditions_true() -> Result<()> {
    let bed = TestBed::named("t12", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    assert_eq!(bed.karpenter.bootstrap(&claim)?, None);
    bed.azure.advance(Duration::from_secs(30));
    bed.ready_node(&claim).await?;
    bed.karpenter.register(&claim).await?;
    bed.azure.advance(Duration::from_secs(5));
    let object = bed
        .claim_when(&claim, "both conditions", |claim| {
            status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
                && status_and_reason(claim, CSE_PROVISIONED) == Some(("True", "CSESucceeded"))
        })
        .await?;
    assert!(conditions(&object).len() >= 6, "Karpenter's conditions stay");
    assert!(bed.events(&claim).await?.is_empty());
    assert!(bed.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    Ok(())
}
