//! What of a boot log counts: the acceptance tests of the boot log, by their numbers.

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Verdict};

use super::console::{boot, diagnosed, only_boot, open_boot, raw, two_boots};

const FULL: &str = "[   58.220145] cloud-init[1045]: tar: opt/cni/bin/bridge: Cannot write: No space left on device";
const CHECKS: &str = "[   60.000001] cloud-init[1045]: [preflight] Running pre-flight checks";
const REFUSED: &str = "[   40.000000] cloud-init[1045]: I0302 14:31:10 token.go:1] [discovery] Failed to request cluster-info, will try again: Get \"https://192.0.2.4:6443/\": dial tcp 192.0.2.4:6443: connect: connection refused";
const STARTING: &str =
    "[   44.000000] cloud-init[1045]: [2026-03-02 14:31:14] [kubelet-start] Starting the kubelet";
const JOINED: &str =
    "[   58.000000] cloud-init[1045]: [2026-03-02 14:31:28] This node has joined the cluster:";
const TOKEN: &str = "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"7kq2pw\"";
const IN_USE: &str = "[   61.118203] cloud-init[1045]: \t[ERROR Port-10250]: Port 10250 is in use";

fn verdict_and_cause(bytes: &[u8]) -> (Verdict, Cause) {
    let found = diagnosed(bytes);
    (found.verdict, found.cause.reason)
}

#[test]
fn test_13_of_two_boots_the_last_one_counts() {
    let log = two_boots(&[FULL], &[TOKEN]);
    let found = diagnosed(&log);
    assert_eq!(found.cause.reason, Cause::BootstrapTokenInvalid);
    assert_eq!(found.cause.confidence, Confidence::High);
    assert!(found.proof.iter().all(|proof| !proof.text.contains("No space")), "{:?}", found.proof);
    let log = two_boots(&[TOKEN], &[JOINED]);
    assert_eq!(verdict_and_cause(&log), (Verdict::Succeeded, Cause::Unknown));
}

#[test]
fn test_13_a_boot_is_known_by_cloud_init_where_the_kernel_is_not_shown() {
    let stage = "Cloud-init v. 25.1 running 'init-local' at Mon, 02 Mar 2026 14:30:35 +0000.";
    let log = raw(&[stage, FULL, stage, TOKEN]);
    assert_eq!(diagnosed(&log).cause.reason, Cause::BootstrapTokenInvalid);
    let log = raw(&["[    0.000000] Linux version 6.8.0", FULL, stage, TOKEN]);
    assert_eq!(diagnosed(&log).cause.reason, Cause::DiskFull, "it is one boot");
}

#[test]
fn test_13_an_earlier_boot_is_believed_less_where_the_last_one_shows_nothing() {
    let found = diagnosed(&two_boots(&[FULL], &[]));
    assert_eq!(found.cause.reason, Cause::DiskFull);
    assert_eq!(found.cause.confidence, Confidence::Medium);
}

#[test]
fn leftovers_of_a_join_are_of_the_image_in_a_first_boot_and_of_a_restart_after_it() {
    let joined_before = "[   61.118203] cloud-init[1045]: \t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists";
    assert_eq!(diagnosed(&only_boot(&[joined_before])).cause.reason, Cause::MachineNotClean);
    assert_eq!(diagnosed(&boot(&[joined_before])).cause.reason, Cause::RebootInterrupted);
    assert_eq!(diagnosed(&only_boot(&[IN_USE])).cause.reason, Cause::MachineNotClean);
    assert_eq!(diagnosed(&boot(&[IN_USE])).cause.reason, Cause::RebootInterrupted);
    let again = [CHECKS, STARTING, CHECKS, IN_USE];
    assert_eq!(diagnosed(&only_boot(&again)).cause.reason, Cause::RebootInterrupted);
    assert_eq!(diagnosed(&only_boot(&[CHECKS, IN_USE])).cause.reason, Cause::MachineNotClean);
}

#[test]
fn test_14_a_success_after_an_error_cancels_it() {
    let log = only_boot(&[TOKEN, CHECKS, JOINED]);
    let found = diagnosed(&log);
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Succeeded, Cause::Unknown));
    assert!(found.proof.is_empty(), "{:?}", found.proof);
    let control_plane = "[   90.000000] cloud-init[1045]: Your Kubernetes control-plane has initialized successfully!";
    assert_eq!(verdict_and_cause(&only_boot(&[TOKEN, control_plane])).0, Verdict::Succeeded);
}

#[test]
fn test_14_an_error_after_a_success_counts_and_one_before_it_does_not() {
    let found = diagnosed(&only_boot(&[TOKEN, JOINED, FULL]));
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Failed, Cause::DiskFull));
    assert!(found.overruled.is_empty(), "{:?}", found.overruled);
    assert_eq!(found.cause.confidence, Confidence::Medium, "the join itself was well");
    assert_eq!(diagnosed(&only_boot(&[FULL])).cause.confidence, Confidence::High);
}

#[test]
fn test_14_a_retry_after_the_success_is_noise() {
    let log = only_boot(&[JOINED, REFUSED, REFUSED]);
    assert_eq!(verdict_and_cause(&log), (Verdict::Succeeded, Cause::Unknown));
}

#[test]
fn test_15_retries_that_came_right_are_no_failure() {
    let missing = "[   41.000000] kubelet[2044]: E0302 kubelet.go:1] \"Error getting node\" err=\"node \\\"web-1\\\" not found\"";
    let metadata = "[    5.000000] cloud-init[704]: 2026-03-02 14:30:36,004 - url_helper.py[WARNING]: Calling 'http://169.254.169.254/metadata/instance' failed [1/20s]: connection refused";
    let elected =
        "[   42.000000] cloud-init[1045]: {\"level\":\"warn\",\"error\":\"etcdserver: no leader\"}";
    let handshake =
        "[   43.000000] cloud-init[1045]: http: TLS handshake error from 192.0.2.9:4431: EOF";
    for retry in [REFUSED, missing, metadata, elected, handshake] {
        let log = open_boot(&[retry, retry, STARTING]);
        assert_eq!(verdict_and_cause(&log), (Verdict::Unknown, Cause::Unknown), "{retry}");
    }
}

#[test]
fn test_15_a_retry_that_is_the_last_state_counts() {
    let found = diagnosed(&open_boot(&[STARTING, REFUSED, REFUSED]));
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Failed, Cause::ApiServerUnreachable));
    assert_eq!(found.cause.confidence, Confidence::Medium, "nothing says that it is over");
}

#[test]
fn test_15_a_retry_does_not_outrank_what_failed_after_it() {
    let download = "[  180.000001] cloud-init[1045]: curl: (28) Failed to connect to downloads.contoso.example port 443 after 130000 ms: Connection timed out";
    let found = diagnosed(&only_boot(&[REFUSED, REFUSED, download]));
    assert_eq!(found.cause.reason, Cause::EgressBlocked);
}

#[test]
fn test_16_dirt_hides_nothing() {
    let mut log = b"\xff\xff\xfe\x00\x00".to_vec();
    log.extend(only_boot(&["\u{1b}[0;31m\u{1b}[1m[   58.220145] cloud-init[1045]: tar: Cannot write: No spa\u{0}ce left\u{1b}[0m on device"]));
    log.extend(b"\xff\xff\xff");
    let found = diagnosed(&log);
    assert_eq!((found.cause.reason, found.cause.confidence), (Cause::DiskFull, Confidence::High));
    let quoted = found.proof[0].text.as_str();
    assert!(quoted.ends_with("tar: Cannot write: No space left on device"), "{quoted}");
}

#[test]
fn test_16_dirt_before_the_end_of_a_bootstrap_hides_no_end() {
    let mut log = raw(&[FULL]);
    log.extend(b"\r\n\xff\xff\x1b[0merror: the script ended\r\n");
    assert_eq!(diagnosed(&log).cause.confidence, Confidence::High);
}

#[test]
fn test_16_of_a_line_of_a_mebibyte_the_part_is_quoted_that_proves_it() {
    let long = "y".repeat(1 << 20);
    let line = format!("{long} No space left on device {long}");
    let found = diagnosed(&only_boot(&[&line]));
    assert_eq!(found.cause.reason, Cause::DiskFull);
    let proof = &found.proof[0];
    assert!(proof.text.contains("No space left on device"), "{}", proof.text);
    assert!(proof.text.len() <= 512, "{}", proof.text.len());
    let marked: String =
        proof.text.chars().skip(proof.span.0).take(proof.span.1 - proof.span.0).collect();
    assert_eq!(marked, "No space left on device");
}

#[test]
fn test_17_without_an_end_the_confidence_is_at_most_medium() {
    let found = diagnosed(&open_boot(&[FULL]));
    assert_eq!((found.cause.reason, found.cause.confidence), (Cause::DiskFull, Confidence::Medium));
    let found = diagnosed(&only_boot(&[FULL]));
    assert_eq!((found.cause.reason, found.cause.confidence), (Cause::DiskFull, Confidence::High));
}

#[test]
fn test_17_what_stands_long_before_the_end_gives_way_to_what_stands_near_it() {
    let line = "[   59.000000] cloud-init[1045]: Unpacking socat (1.8.0.0-4build3) ...";
    let unpacked = vec![line; 420];
    let far = [&[FULL], &unpacked[..], &[TOKEN]].concat();
    assert_eq!(diagnosed(&only_boot(&far)).cause.reason, Cause::BootstrapTokenInvalid);
    let alone = [&[FULL], &unpacked[..]].concat();
    let found = diagnosed(&only_boot(&alone));
    assert_eq!((found.cause.reason, found.cause.confidence), (Cause::DiskFull, Confidence::Medium));
}

#[test]
fn test_21_the_list_of_failed_checks_decides_and_not_the_error_around_it() {
    let log = only_boot(&[
        CHECKS,
        "[   61.118203] cloud-init[1045]: \t[WARNING Hostname]: hostname \"web-1\" could not be reached",
        "[   61.118203] cloud-init[1045]: error execution phase preflight: [preflight] Some fatal errors occurred:",
        "[   61.118204] cloud-init[1045]: \t[ERROR FileExisting-conntrack]: conntrack not found in system path",
        "[   61.118205] cloud-init[1045]: [preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`",
        "[   61.118206] cloud-init[1045]: error: error execution phase preflight: preflight checks failed",
        "[   61.118207] cloud-init[1045]: To see the stack trace of this error execute with --v=5 or higher",
        "[   61.904001] cloud-init[1045]: 2026-03-02 14:31:42,301 - cc_scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in /var/lib/cloud/instance/scripts)",
    ]);
    let found = diagnosed(&log);
    assert_eq!(
        (found.cause.reason, found.cause.confidence),
        (Cause::BinaryMissing, Confidence::High)
    );
    assert!(found.proof[0].text.contains("conntrack not found"), "{}", found.proof[0].text);
}

#[test]
fn what_kubeadm_failed_of_goes_before_a_retry_that_came_right() {
    let retried =
        "[   30.000000] cloud-init[1045]: curl: (6) Could not resolve host: get.contoso.example";
    for log in [only_boot(&[retried, CHECKS, TOKEN]), raw(&[retried, CHECKS, TOKEN])] {
        let found = diagnosed(&log);
        assert_eq!(found.cause.reason, Cause::BootstrapTokenInvalid);
    }
    let found = diagnosed(&only_boot(&[retried, TOKEN]));
    assert_eq!(found.cause.reason, Cause::DnsFailure, "nothing says that kubeadm began after it");
    let checked = "[   61.118203] cloud-init[1045]: \t[ERROR CRI]: could not connect to the container runtime: connect: no such file or directory";
    let found = diagnosed(&only_boot(&[retried, CHECKS, checked]));
    assert_eq!(found.cause.reason, Cause::DnsFailure, "what was not installed fails the checks");
}
