//! The three sample logs, whole: what they mean, and what is quoted of them.

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Verdict};

use super::console::{diagnosed, two_boots};

const TOKEN: &[u8] = include_bytes!("samples/token-expired.log");
const RESULT: &[u8] = include_bytes!("samples/result-on-console.log");
const JOINED: &[u8] = include_bytes!("samples/joined.log");

/// What stands around the best proof of a log.
fn around(log: &[u8]) -> (Vec<String>, Vec<String>) {
    let found = diagnosed(log);
    let texts = |lines: &[bringup_diagnosis::redaction::Redacted]| {
        lines.iter().map(|line| line.as_str().to_owned()).collect()
    };
    (texts(&found.proof[0].before), texts(&found.proof[0].after))
}

#[test]
fn test_12_a_token_that_expired_is_quoted_between_two_lines_before_and_after() {
    let found = diagnosed(TOKEN);
    assert_eq!(
        (found.verdict, found.cause.reason),
        (Verdict::Failed, Cause::BootstrapTokenInvalid)
    );
    assert_eq!(found.cause.confidence, Confidence::High);
    assert!(found.proof[0].text.contains("could not find a JWS signature"), "{:?}", found.proof);
    let (before, after) = around(TOKEN);
    assert_eq!((before.len(), after.len()), (2, 2), "{before:?} {after:?}");
    assert!(before[0].contains("Started containerd.service"), "without colours: {before:?}");
    assert!(before[1].ends_with("[preflight] Running pre-flight checks"), "{before:?}");
    assert!(after[0].ends_with("execute with --v=5 or higher"), "{after:?}");
    assert!(after[1].contains("Failed to run module scripts_user"), "{after:?}");
}

#[test]
fn test_12_a_result_on_the_console_tells_of_the_program_that_is_missing() {
    let found = diagnosed(RESULT);
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Failed, Cause::BinaryMissing));
    assert_eq!(found.exit_code, Some(211));
    assert!(found.proof[0].text.contains("failed to run command 'oras'"), "{:?}", found.proof);
}

#[test]
fn test_12_a_machine_that_joined_after_a_retry_has_not_failed() {
    let found = diagnosed(JOINED);
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Succeeded, Cause::Unknown));
    assert!(found.proof.is_empty(), "{:?}", found.proof);
}

#[test]
fn what_is_quoted_around_a_line_is_short_without_secrets_and_of_the_same_boot() {
    let full = "[   58.220145] cloud-init[1045]: tar: Cannot write: No space left on device";
    let secret = "[   57.220145] cloud-init[1045]: kubeadm join --token q1w2e3.0123456789abcdef";
    let long = format!("[   59.220145] cloud-init[1045]: {}", "x ".repeat(2000));
    let (before, after) = around(&two_boots(&[], &[secret, full, &long]));
    assert!(before[1].contains("kubeadm join"), "{before:?}");
    assert!(!before[1].contains("0123456789abcdef"), "{before:?}");
    assert!(after.iter().chain(&before).all(|line| line.len() <= 512), "{after:?}");
    let found = diagnosed(b"[    0.000000] Linux version 6.8.0\r\n[   1.0] No space left on device\r\n[    0.000000] Linux version 6.8.0\r\nnothing\r\n");
    assert_eq!((found.proof[0].before.len(), found.proof[0].after.len()), (1, 0));
}

#[test]
fn only_the_best_proof_has_lines_around_it() {
    let full =
        "[   58.220145] cloud-init[1045]: tar: bridge: Cannot write: No space left on device";
    let again = "[   59.220145] cloud-init[1045]: cp: error writing 'a': No space left on device";
    let found = diagnosed(&two_boots(&[], &[full, "between", again, "behind"]));
    assert!(found.proof.len() > 1 && !found.proof[0].after.is_empty(), "{:?}", found.proof);
    assert!(found.proof[1].before.is_empty() && found.proof[1].after.is_empty());
}
