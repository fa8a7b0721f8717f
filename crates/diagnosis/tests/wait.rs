//! What `bringup-node wait` says is believed, and its numbers are not taken for codes of the AKS
//! scripts.

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, Verdict, diagnose};

fn waited(exit: i32, more: &str) -> Diagnosis {
    diagnose(&Evidence::of_text(&format!(
        "failed to execute command: command terminated with exit status={exit}\n[stdout]\nBRINGUP-NODE/1 {{\"v\":1,\"kind\":\"wait\",\"exit\":{exit},\"name\":\"X\"{more},\"end\":1}}\n\n[stderr]\nwait failed ({exit})\n"
    )))
}

#[test]
fn the_number_of_a_wait_is_not_looked_up_among_the_codes_of_the_scripts() {
    let found = waited(31, ",\"cause\":\"ControlPlaneNotReady\",\"conf\":\"high\"");
    assert_eq!(found.verdict, Verdict::Failed);
    assert_eq!(found.cause.reason, Cause::ControlPlaneNotReady);
    assert_eq!((found.exit_code, found.constant.as_deref()), (None, None));
    assert!(found.summary.contains("exit code 31 of bringup-node wait"), "{}", found.summary);
}

#[test]
fn the_code_of_the_scripts_comes_through_a_wait() {
    let found = waited(25, ",\"code\":50,\"cause\":\"DnsFailure\",\"conf\":\"high\"");
    assert_eq!((found.exit_code, found.cause.reason), (Some(50), Cause::DnsFailure));
}

#[test]
fn a_node_that_joined_and_a_wait_that_goes_on_are_no_failures() {
    assert_eq!(waited(0, "").verdict, Verdict::Succeeded);
    assert_eq!(waited(3, "").verdict, Verdict::Succeeded);
    assert_eq!(waited(75, "").verdict, Verdict::Running);
    assert_eq!(waited(11, ",\"cause\":\"ProvisionerNeverStarted\"").verdict, Verdict::Failed);
}

#[test]
fn a_wait_that_is_not_sure_is_believed_beside_a_console_that_says_nothing() {
    let line = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"ControlPlaneNotReady\",\"conf\":\"medium\",\"end\":1}";
    let console = "[    4.200000] cloud-init[611]: Cloud-init v. 25.1 running 'init-local'.";
    let mut pieces = vec![
        Piece::seen(Source::Extension, "extension CustomScript", line),
        Piece::seen(Source::SerialLog, "serial log", console),
    ];
    for _ in 0..2 {
        let found = diagnose(&Evidence { pieces: pieces.clone(), ..Evidence::default() });
        assert_eq!(found.cause.reason, Cause::ControlPlaneNotReady);
        assert_eq!(found.cause.confidence, Confidence::Medium);
        pieces.reverse();
    }
}

#[test]
fn an_extension_that_only_says_that_it_failed_is_quoted() {
    let linux = "Enable failed: failed to execute command: command terminated with exit status=1";
    let windows =
        "Command execution finished, but failed because it returned a non-zero exit code of: '1'.";
    let noise = "handler was installed\nan earlier error was ignored";
    for said in [linux, windows] {
        for source in [Source::Extension, Source::Arm] {
            let text = format!("{noise}\n{said}");
            let pieces = vec![Piece::seen(source, "extension", &text)];
            let found = diagnose(&Evidence { pieces, ..Evidence::default() });
            let cause = (found.verdict, found.cause.reason);
            assert_eq!(cause, (Verdict::Failed, Cause::Unknown), "{source:?}: {said}");
            let quoted: Vec<&str> = found.proof.iter().map(|proof| proof.text.as_str()).collect();
            assert_eq!(quoted, [said], "{source:?}");
        }
    }
}
