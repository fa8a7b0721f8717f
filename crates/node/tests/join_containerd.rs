//! The pitfalls of containerd's configuration, before the join, at its end, and afterwards.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use join_common::Plain;

const NVIDIA: &str = "/etc/containerd/conf.d/99-nvidia.toml";

/// A drop-in as the toolkit of the GPU operator writes it.
const DROP_IN: &str = "version = 3\n\n[plugins.\"io.containerd.cri.v1.runtime\".cni]\n  bin_dir = \"\"\n  conf_dir = \"/etc/cni/net.d\"\n\n[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia]\n  runtime_type = \"io.containerd.runc.v2\"\n";

fn assert_corrected(plain: &Plain) {
    let text = plain.machine.read(NVIDIA);
    assert!(!text.contains("bin_dir") && text.contains("runtimes.nvidia"), "{text}");
}

#[test]
fn test_49_an_old_main_file_beside_a_new_drop_in_is_replaced_before_the_join() {
    let plain = Plain::new();
    let old = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\nSystemdCgroup = true\n";
    plain.machine.file("/etc/containerd/config.toml", old);
    plain.machine.file(NVIDIA, "version = 3\n");
    plain.assert_joined(&plain.join());
    let evidence = plain.step("runtime")["evidence"].to_string();
    assert!(evidence.contains("version 2 and a drop-in of version 3"), "{evidence}");
    assert!(plain.machine.read("/etc/containerd/config.toml").contains("version = 3"));
    assert_eq!(plain.machine.read("/etc/containerd/config.toml.before-bringup"), old);
}

#[test]
fn test_49_what_containerd_makes_of_it_counts_and_not_what_is_written() {
    let plain = Plain::new();
    plain.machine.file("/dump", "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = false\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dirs = ['/opt/cni/bin']\nconf_dir = '/etc/cni/net.d'\n");
    let ended = plain.join();
    plain.assert_failed(
        &ended,
        196,
        "ContainerRuntimeFailure",
        "SystemdCgroup of runc is not true",
    );
    assert_eq!(plain.calls("kubeadm join"), 0);
    plain.machine.remove("/dump");
    plain.assert_joined(&plain.join_again());
}

#[test]
fn test_51_a_blank_folder_of_plugins_is_corrected_for_2_0_and_for_2_1() {
    for version in ["2.0.5", "2.1.4"] {
        let mut plain = Plain::new();
        plain.machine.file("/containerd-version", version);
        plain.config["artifacts"]["containerd"]["version"] = version.into();
        plain.machine.file(NVIDIA, DROP_IN);
        plain.assert_joined(&plain.join());
        assert_corrected(&plain);
        assert!(plain.step("runtime")["evidence"].to_string().contains("99-nvidia.toml"));
    }
}

#[test]
fn test_51_what_cannot_be_corrected_is_told_as_a_failure_of_the_network() {
    let plain = Plain::new();
    plain.machine.file("/dump", "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dir = ''\nconf_dir = '/etc/cni/net.d'\n");
    let ended = plain.join();
    plain.assert_failed(&ended, 196, "CniFailure", "in path []");
}

#[test]
fn test_50_52_what_was_rewritten_during_the_join_is_corrected_before_the_node_is_ready() {
    let plain = Plain::new();
    let drop_in = plain.machine.at(NVIDIA);
    plain.machine.file(
        "/kubeadm-does",
        &format!(
            "mkdir -p {0}; cat >{1} <<'END'\n{DROP_IN}END\n",
            drop_in.parent().unwrap().display(),
            drop_in.display()
        ),
    );
    plain.machine.file("/journal", "failed to setup network for sandbox: plugin type=\"azure-vnet\": failed to find plugin \"azure-vnet\" in path []\n");
    plain.assert_joined(&plain.join());
    assert_corrected(&plain);
    let evidence = plain.step("ready")["evidence"].to_string();
    assert!(evidence.contains("99-nvidia.toml") && evidence.contains("containerd was started"));
    assert!(evidence.contains("had no path of network plugins"), "{evidence}");
}

#[test]
fn test_50_what_cannot_be_corrected_at_the_end_has_a_number_of_its_own() {
    let plain = Plain::new();
    plain.machine.file("/kubeadm-does", "printf 'version = 2\\n' >$R/dump");
    let ended = plain.join();
    plain.assert_failed(&ended, 199, "ContainerRuntimeFailure", "its version is 2");
    plain.machine.remove("/dump");
    plain.forget_calls();
    plain.assert_joined(&plain.join_again());
    assert_eq!(plain.calls("kubeadm join"), 0);
}

#[test]
fn test_50_what_is_rewritten_later_is_corrected_by_the_watch() {
    let plain = Plain::new();
    plain.assert_joined(&plain.join());
    let watch = plain.machine.read("/etc/systemd/system/bringup-containerd.path");
    assert!(watch.contains("PathChanged=/etc/containerd/conf.d\n"), "{watch}");
    assert_eq!(plain.machine.read("/units/bringup-containerd.path.active"), "active\n");
    let service = plain.machine.read("/etc/systemd/system/bringup-containerd.service");
    assert!(service.contains(" join --repair-containerd\n"), "{service}");
    plain.machine.file(NVIDIA, DROP_IN);
    for said in ["corrected\n", "nothing to correct\n"] {
        plain.forget_calls();
        let ended = plain.machine.run(&["join", "--repair-containerd"]);
        assert_eq!((ended.code, ended.out.as_str()), (0, said), "{}", ended.err);
        assert_corrected(&plain);
        let restarts = plain.calls("systemctl restart containerd");
        assert_eq!(restarts, usize::from(said == "corrected\n"));
    }
}
