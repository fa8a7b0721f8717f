//! Every step can fail: with its own exit code, within its own time limit, with the cause and its evidence;
//! and when the reason is removed, the same machine joins.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use std::fs;

use join_common::Plain;

/// Removes the reason for the failure, and checks that the machine then joins.
fn assert_joins_without(plain: &Plain, reason: &str) {
    fs::remove_file(plain.machine.at(reason)).unwrap();
    plain.assert_joined(&plain.join_again());
}

#[test]
fn step_1_a_package_that_cannot_be_had() {
    let plain = Plain::new();
    plain.machine.file(
        "/apt-fails",
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)\n",
    );
    let ended = plain.join();
    plain.assert_failed(&ended, 192, "PackageManagerLocked", "lock-frontend");
    assert_eq!(ended.summary()["step"], "base-os");
    assert_joins_without(&plain, "/apt-fails");
}

#[test]
fn test_57_step_1_a_kernel_that_refuses_modules_with_secure_boot() {
    let plain = Plain::new();
    plain.machine.file("/no-modules", "");
    plain.machine.file(
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        "\u{6}\u{0}\u{0}\u{0}\u{1}",
    );
    let ended = plain.join();
    plain.assert_failed(&ended, 192, "KernelMismatch", "Secure Boot is on");
    assert_joins_without(&plain, "/no-modules");
}

#[test]
fn step_1_a_resolver_with_nothing_behind_it() {
    let plain = Plain::new();
    plain.machine.remove("/run/systemd/resolve/resolv.conf");
    let ended = plain.join();
    plain.assert_failed(&ended, 192, "DnsFailure", "/etc/resolv.conf names a stub");
}

#[test]
fn step_2_docker_that_cannot_be_masked() {
    let plain = Plain::new();
    plain.machine.file("/no-mask", "");
    let ended = plain.join();
    assert_eq!((ended.code, &ended.summary()["step"]), (193, &"docker".into()), "{}", ended.err);
    assert!(ended.err.contains("docker.socket is not masked"), "{}", ended.err);
    assert_joins_without(&plain, "/no-mask");
}

#[test]
fn test_55_downloads_fail_each_for_their_own_cause() {
    for (answer, cause, words, tries) in [
        ("echo x >$out; printf '404 0.1 text/html'; exit 0", "ArtifactMissing", "HTTP 404", 1),
        (
            "echo '<!DOCTYPE html><title>Sign in' >$out; printf '200 0.1 text/html'; exit 0",
            "ProxyMisconfigured",
            "a web page came",
            1,
        ),
        (
            "echo other >$out; printf '200 0.1 application/gzip'; exit 0",
            "DownloadInterrupted",
            "its checksum is another",
            5,
        ),
        (
            "echo 'curl: (7) Failed to connect to dl.example port 443' >&2; printf '000 0.0'; exit 7",
            "EgressBlocked",
            "cannot be reached",
            5,
        ),
        (
            "echo 'curl: (6) Could not resolve host: dl.example' >&2; printf '000 0.0'; exit 6",
            "DnsFailure",
            "does not resolve",
            5,
        ),
    ] {
        let mut plain = Plain::new();
        // The limit determines the pauses of the step.
        plain.config["limits"]["containerd"] = 15.into();
        plain.machine.file("/curl/runc", answer);
        let ended = plain.join();
        plain.assert_failed(&ended, 194, cause, words);
        assert!(ended.err.contains("runc from dl.example"), "{}", ended.err);
        let asked = plain.calls("url https://dl.example/runc");
        assert_eq!(asked, tries, "{cause}");
        // Artifacts that were installed before the failure are not downloaded again.
        assert_joins_without(&plain, "/curl/runc");
        assert_eq!(plain.calls("url https://dl.example/containerd"), 1);
    }
}

#[test]
fn step_3_a_program_that_is_not_what_it_is_called() {
    let mut plain = Plain::new();
    plain.config["artifacts"]["containerd"]["version"] = "2.2.0".into();
    let ended = plain.join();
    plain.assert_failed(&ended, 194, "VersionSkew", "containerd is not 2.2.0");
}

#[test]
fn step_4_a_kubelet_that_is_gone_from_its_place() {
    let plain = Plain::new();
    plain.machine.file("/curl/kubelet", "printf '404 0.1'; exit 0");
    let ended = plain.join();
    plain.assert_failed(&ended, 195, "ArtifactMissing", "HTTP 404");
    assert_eq!(ended.summary()["step"], "kubernetes");
    assert_joins_without(&plain, "/curl/kubelet");
}

#[test]
fn step_5_an_interface_that_does_not_answer() {
    let mut plain = Plain::new();
    plain.config["limits"]["runtime"] = 10.into();
    plain.machine.file("/no-cri", "");
    let ended = plain.join();
    plain.assert_failed(&ended, 196, "ContainerRuntimeFailure", "containerd has no plugin cri");
    assert_joins_without(&plain, "/no-cri");
}

#[test]
fn step_5_containerd_that_does_not_start() {
    let mut plain = Plain::new();
    plain.config["limits"]["runtime"] = 6.into();
    plain.machine.file("/containerd.service.fails", "");
    plain
        .machine
        .file("/journal", "containerd: failed to load TOML: /etc/containerd/config.toml\n");
    let ended = plain.join();
    plain.assert_failed(&ended, 196, "ContainerRuntimeFailure", "failed to load TOML");
    assert_joins_without(&plain, "/containerd.service.fails");
}

#[test]
fn step_6_rules_that_stay() {
    let plain = Plain::new();
    plain.machine.file("/no-flush", "");
    let ended = plain.join();
    assert_eq!((ended.code, &ended.summary()["step"]), (197, &"firewall".into()), "{}", ended.err);
    assert!(ended.err.contains("the table filter still has"), "{}", ended.err);
    assert_eq!(plain.calls("kubeadm join"), 0);
    assert_joins_without(&plain, "/no-flush");
}

#[test]
fn test_54_unauthorized_with_a_good_token_is_a_missing_role() {
    let plain = Plain::new();
    let said = "error execution phase preflight: couldn't validate the identity of the API Server: failed to request the cluster-info ConfigMap: Unauthorized";
    plain.machine.file("/kubeadm-does", &format!("echo \"{said}\" >&2; exit 1"));
    plain.machine.file("/curl/cluster-info", "printf 403; exit 0");
    let ended = plain.join();
    plain.assert_failed(&ended, 198, "TlsBootstrapPending", "HTTP 403");
    assert!(ended.err.contains("a role is missing"), "{}", ended.err);
    plain.assert_silent(&plain.machine.at(join_common::CONFIG), &ended);
}

#[test]
fn test_58_a_token_that_has_expired_or_was_replaced() {
    for (said, answer) in [
        ("couldn't validate the identity of the API Server: Unauthorized", "401"),
        (
            "error execution phase preflight: the server has asked for the client to provide credentials",
            "000",
        ),
        (
            "couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID qwerty",
            "200",
        ),
    ] {
        let plain = Plain::new();
        plain.machine.file("/kubeadm-does", &format!("echo \"{said}\" >&2; exit 1"));
        plain.machine.file("/curl/cluster-info", &format!("printf {answer}; exit 0"));
        let ended = plain.join();
        plain.assert_failed(&ended, 198, "BootstrapTokenInvalid", "");
        assert!(!plain.machine.at("/run/bringup-node/join/join.json").exists());
        // Delivers a new token.
        plain.machine.remove("/kubeadm-does");
        plain.assert_joined(&plain.join());
        assert!(plain.step("join")["evidence"].to_string().contains("left half done and is reset"));
    }
}

#[test]
fn test_53_a_join_that_hangs_is_ended_and_the_reason_is_looked_for() {
    let mut plain = Plain::new();
    plain.config["limits"]["join"] = 10.into();
    plain.machine.file(
        "/kubeadm-does",
        // A hanging stub makes the time limit end.
        &format!(
            "echo '[preflight] Running pre-flight checks'; echo $$ >$R/hung; {}; sleep 1000",
            plain.machine.time_passes(10_000)
        ),
    );
    plain.machine.file("/curl/cluster-info", "exit 28");
    let ended = plain.join();
    plain.assert_failed(&ended, 198, "ApiServerUnreachable", "the API server cannot be reached");
    assert!(ended.err.contains("had not ended after"), "{}", ended.err);
    let pid = plain.machine.read("/hung");
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "it lives");
    plain.machine.remove("/curl/cluster-info");
    plain.config["limits"]["join"] = 30.into();
    plain.machine.remove("/kubeadm-does");
    plain.assert_joined(&plain.join());
}

#[test]
fn step_7_what_kubeadm_finds_on_the_machine_is_the_cause() {
    let plain = Plain::new();
    let said = "[preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2";
    plain.machine.file("/kubeadm-does", &format!("echo '{said}' >&2; exit 1"));
    plain.machine.file("/curl/cluster-info", "printf 403; exit 0");
    let ended = plain.join();
    plain.assert_failed(&ended, 198, "VmTooSmall", "NumCPU");
}

#[test]
fn step_7_a_kubelet_that_does_not_stay_up() {
    let mut plain = Plain::new();
    plain.config["limits"]["join"] = 10.into();
    plain.machine.file("/kubelet.service.fails", "");
    let ended = plain.join();
    assert_eq!((ended.code, &ended.summary()["step"]), (198, &"join".into()), "{}", ended.err);
    assert!(ended.err.contains("kubelet.service is not active"), "{}", ended.err);
    plain.machine.file("/units/kubelet.service.active", "inactive\n");
    plain.forget_calls();
    assert_joins_without(&plain, "/kubelet.service.fails");
    // The node had joined: only kubelet was started.
    assert_eq!((plain.calls("kubeadm join"), plain.calls("systemctl start kubelet")), (0, 1));
}

#[test]
fn a_step_has_its_time_and_no_more() {
    let mut plain = Plain::new();
    plain.config["limits"]["docker"] = 2.into();
    let passes = plain.machine.time_passes(2_000);
    plain.machine.file("/systemctl-hangs", &format!("{passes}; sleep 1000"));
    let ended = plain.join();
    plain.assert_failed(&ended, 193, "TimeBudgetExhausted", "systemctl had not ended after");
    let step = plain.step("docker");
    assert_eq!((&step["state"], &step["limit_s"]), (&"failed".into(), &2.into()));
    assert_joins_without(&plain, "/systemctl-hangs");
}
