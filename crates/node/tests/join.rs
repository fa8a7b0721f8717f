//! A plain image joins: every step, its results, and that a second run repeats no work.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use join_common::{CONFIG, Plain, TOKEN};
use serde_json::Value;

#[test]
fn a_plain_image_becomes_a_node_and_every_step_says_what_it_did() {
    let plain = Plain::new();
    let ended = plain.join();
    plain.assert_joined(&ended);
    let machine = &plain.machine;
    let report = plain.report();
    let steps = report["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["base-os", "docker", "containerd", "kubernetes", "runtime", "firewall", "join", "ready"]
    );
    for step in steps {
        assert_eq!(step["state"], "done", "{step}");
        assert!(step["ms"].is_number() && step["limit_s"].is_number());
        assert!(!step["evidence"].as_array().unwrap().is_empty(), "{step}");
    }
    // Step 1.
    assert!(machine.at("/usr/bin/jq").exists() && machine.at("/usr/bin/conntrack").exists());
    assert_eq!(machine.read("/proc/sys/net/ipv4/ip_forward"), "1\n");
    assert_eq!(machine.read("/proc/sys/net/bridge/bridge-nf-call-iptables"), "1\n");
    assert_eq!(machine.read("/proc/swaps").lines().count(), 1);
    assert!(machine.read("/etc/fstab").contains("# bringup: /swapfile"));
    assert_eq!(machine.read("/etc/resolv.conf"), "nameserver 168.63.129.16\n");
    // Step 2.
    assert_eq!(machine.read("/units/docker.socket.enabled"), "masked\n");
    assert_eq!(machine.read("/units/docker.service.enabled"), "masked\n");
    // Steps 3 and 4.
    for program in ["bin/containerd", "bin/ctr", "sbin/runc", "bin/kubeadm", "bin/kubelet"] {
        let data = fs::metadata(machine.at("/usr/local").join(program)).unwrap();
        assert_eq!(data.permissions().mode() & 0o777, 0o755, "{program}");
    }
    // Step 5.
    assert!(machine.read("/etc/containerd/config.toml").contains("\nversion = 3\n"));
    assert_eq!(machine.read("/units/containerd.service.active"), "active\n");
    // Step 6.
    assert_eq!(machine.read("/rules/filter"), "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n");
    assert!(plain.calls("iptables -w -t security") == 0);
    assert_eq!(machine.run(&["report", "--json"]).code, 0);
}

#[test]
fn test_35_37_56_kubeadm_gets_what_the_class_says_and_the_token_goes_with_it() {
    let plain = Plain::new();
    let ended = plain.join();
    plain.assert_joined(&ended);
    let machine = &plain.machine;
    let join: Value = machine.json("/seen/join.json");
    assert_eq!(join["apiVersion"], "kubeadm.k8s.io/v1beta4");
    assert_eq!(join["kind"], "JoinConfiguration");
    assert_eq!(join["discovery"]["tlsBootstrapToken"], TOKEN);
    let registration = &join["nodeRegistration"];
    assert_eq!(registration["name"], "gpu-1");
    assert_eq!(registration["taints"][0]["effect"], "NoExecute");
    let flags = registration["kubeletExtraArgs"].to_string();
    for flag in [
        r#"{"name":"max-pods","value":"60"}"#,
        r#"{"name":"node-ip","value":"10.0.0.5"}"#,
        r#"{"name":"provider-id","value":"azure-flex:///subscriptions/s/vm"}"#,
        r#"{"name":"node-labels","value":"kubernetes.azure.com/managed=false"}"#,
    ] {
        assert!(flags.contains(flag), "{flags}");
    }
    assert!(plain.step("join")["evidence"].to_string().contains("kubernetes.io/role"));
    let discovery = machine.json("/seen/discovery.json");
    assert_eq!(discovery["clusters"][0]["cluster"]["server"], "https://api.example.io:443");
    assert_eq!(discovery["users"][0]["user"]["token"], TOKEN);
    assert_eq!(machine.read("/seen/modes"), "600\n600\n600\n");
    assert!(fs::read_dir(machine.at("/run/bringup-node/join")).unwrap().next().is_none());
    plain.assert_silent(&machine.at("/nothing"), &ended);
}

#[test]
fn a_second_time_nothing_is_done_twice_also_without_the_configuration() {
    let plain = Plain::new();
    plain.assert_joined(&plain.join());
    // Rules of kube-proxy.
    plain.machine.file("/rules/filter", "-P INPUT ACCEPT\n-A INPUT -j KUBE-FIREWALL\n");
    for deliver in [true, false] {
        plain.forget_calls();
        // Simulates a reboot.
        fs::remove_dir_all(plain.machine.at("/run/cluster-api")).unwrap();
        let ended = if deliver { plain.join() } else { plain.join_again() };
        plain.assert_joined(&ended);
        let report = plain.report();
        for step in report["steps"].as_array().unwrap() {
            assert_eq!(step["state"], "unchanged", "{step}");
        }
        for call in [
            "apt-get",
            "url ",
            "tar",
            "modprobe",
            "sysctl",
            "swapoff",
            "kubeadm join",
            "kubeadm reset",
            "systemctl restart",
            "systemctl mask",
            "systemctl stop",
            "systemctl enable",
            "systemctl start",
            "systemctl daemon-reload",
            "iptables",
        ] {
            assert_eq!(plain.calls(call), 0, "{call}\n{}", plain.machine.read("/calls"));
        }
    }
    assert!(plain.machine.read("/rules/filter").contains("KUBE-FIREWALL"));
}

#[test]
fn a_configuration_that_is_missing_or_wrong_is_refused_by_field_and_nothing_is_run() {
    let mut plain = Plain::new();
    let ended = plain.join_again();
    plain.assert_failed(&ended, 191, "ConfigRejected", "No such file");
    plain.config["node"]["maxPods"] = 3.into();
    let ended = plain.join();
    plain.assert_failed(&ended, 191, "ConfigRejected", "node.maxPods: not from 10 to 250");
    plain.config["node"]["maxPods"] = 30.into();
    plain.config["cluster"]["version"] = "1.33.0".into();
    let ended = plain.join();
    plain.assert_failed(&ended, 191, "ConfigRejected", "kubernetesVersion: does not go with");
    assert_eq!(
        plain
            .machine
            .read("/calls")
            .lines()
            .filter(|l| !l.starts_with("systemctl show") && !l.starts_with("journalctl"))
            .count(),
        0
    );
    assert_eq!(plain.machine.run(&["join"]).code, 64);
}

#[test]
fn a_configuration_that_others_may_read_is_closed_and_that_is_told() {
    let plain = Plain::new();
    let path = plain.deliver();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    plain.machine.file("/curl/containerd", "printf '404 0.1'; exit 0");
    let ended = plain.join_again();
    assert_eq!(ended.code, 194);
    assert!(ended.summary()["warn"].to_string().contains("could be read by others"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    plain.assert_silent(&plain.machine.at(CONFIG), &ended);
}

#[test]
fn a_disk_that_takes_no_result_does_not_lose_it() {
    let plain = Plain::new();
    plain.machine.file("/var/log/azure/aks", "a file where a folder should be");
    let ended = plain.join_again();
    assert_eq!(ended.code, 191);
    assert_eq!(plain.machine.json("/run/bringup-node/result.json")["ExitCode"], "191");
}

#[test]
fn those_who_wait_see_a_join_and_why_it_failed() {
    let plain = Plain::new();
    plain.machine.file("/curl/runc", "printf '404 0.1'; exit 0");
    assert_eq!(plain.join().code, 194);
    let waited = plain.machine.run(&["wait", "--timeout=60s"]);
    assert_eq!(waited.code, 35, "{}", waited.err);
    assert!(waited.out.contains("\"code\":194") && waited.out.contains("ArtifactMissing"));
    let waited = plain.machine.wait();
    assert_eq!(waited.code, 194);
    assert_eq!(waited.summary()["name"], "JOIN_CONTAINERD_NOT_INSTALLED");
    assert_eq!(waited.document()["Bringup"]["kind"], "join");
    fs::remove_file(plain.machine.at("/curl/runc")).unwrap();
    fs::remove_file(plain.machine.at("/var/lib/bringup-node/wait.json")).unwrap();
    plain.assert_joined(&plain.join_again());
    assert_eq!(plain.machine.run(&["wait", "--timeout=60s"]).code, 0);
    assert_eq!(plain.machine.wait().code, 0);
}

#[test]
#[cfg(debug_assertions)]
fn a_defect_is_a_result_too() {
    let plain = Plain::new();
    plain.deliver();
    let output = plain.command().env("BRINGUP_NODE_TEST_PANIC", "1").output().unwrap();
    let ended = join_common::common::Ended::of(&output);
    plain.assert_failed(&ended, 165, "Unknown", "as asked for");
}
