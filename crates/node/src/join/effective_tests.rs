use super::*;

/// The output of 2.0 and 2.1 for a correct configuration.
fn dump(cni: &str) -> String {
    format!(
        "version = 3\nroot = '/var/lib/containerd'\ndisabled_plugins = []\nimports = ['/etc/containerd/config.toml', '/etc/containerd/conf.d/99-nvidia.toml']\n\n[plugins]\n  [plugins.'io.containerd.cri.v1.runtime']\n    enable_cdi = true\n\n    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n      SystemdCgroup = true\n\n    [plugins.'io.containerd.cri.v1.runtime'.cni]\n{cni}\n      conf_dir = '/etc/cni/net.d'\n\n  [plugins.'io.containerd.grpc.v1.cri']\n    disable_tcp_service = true\n"
    )
}

fn problems(dump: &str, knows_bin_dirs: bool) -> Vec<String> {
    Effective::read(dump).problems(knows_bin_dirs).iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_configuration_of_either_kind_has_no_problem() {
    assert!(problems(&dump("bin_dir = '/opt/cni/bin'"), false).is_empty());
    assert!(problems(&dump("bin_dir = ''\nbin_dirs = ['/opt/cni/bin']"), true).is_empty());
    assert!(problems(&dump("bin_dirs = [\n  '/opt/cni/bin',\n]"), true).is_empty());
    assert_eq!(Effective::read(&dump("")).imports().len(), 2);
}

#[test]
fn test_49_an_old_main_file_with_a_new_drop_in_leaves_defaults_and_that_is_seen() {
    let merged = dump("bin_dir = '/opt/cni/bin'")
        .replace("SystemdCgroup = true", "SystemdCgroup = false")
        + "    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\n      SystemdCgroup = true\n";
    assert_eq!(problems(&merged, false), ["SystemdCgroup of runc is not true"]);
    assert!(problems("version = 2\n", false)[0].contains("its version is 2"));
}

#[test]
fn test_51_a_blank_folder_of_plugins_is_seen_before_and_after_2_1() {
    for (cni, knows) in [
        ("bin_dir = ''", false),
        ("bin_dir = \"\"", true),
        // containerd 2.0 does not know the second key.
        ("bin_dir = ''\nbin_dirs = ['/opt/cni/bin']", false),
        ("bin_dir = ''\nbin_dirs = []", true),
    ] {
        assert!(problems(&dump(cni), knows)[0].contains("in path []"), "{cni}");
    }
    let both = "bin_dir = '/opt/cni/bin'\nbin_dirs = ['/opt/cni/bin']";
    assert!(problems(&dump(both), true)[0].contains("both set"));
    assert!(problems(&dump(both), false).is_empty());
}

#[test]
fn a_disabled_plugin_is_seen() {
    let dump = dump("bin_dir = '/opt/cni/bin'")
        .replace("disabled_plugins = []", "disabled_plugins = [\"cri\"]");
    assert_eq!(problems(&dump, false), ["the plugin cri is disabled"]);
}

#[test]
fn test_51_a_drop_in_that_blanks_the_folder_is_corrected_so_that_every_version_takes_it() {
    let drop_in = "version = 3\n\n[plugins]\n  [plugins.'io.containerd.cri.v1.runtime'.cni]\n    bin_dir = \"\"\n    bin_dirs = []\n    conf_dir = '/etc/cni/net.d'\n  [plugins.other]\n    bin_dir = ''\n";
    let right = corrected(drop_in).unwrap();
    let cni = right.split("[plugins.other]").next().unwrap();
    assert!(!cni.contains("bin_dir") && cni.contains("conf_dir"), "{right}");
    // The table of another plugin stays unchanged.
    assert!(right.ends_with("bin_dir = ''\n"));
    assert!(toml::from_str::<toml::Value>(&right).is_ok());
    assert_eq!(corrected(&right), None);
}

#[test]
fn a_folder_that_is_set_twice_is_set_once_and_a_good_drop_in_is_left_alone() {
    let twice =
        "[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dir = '/a'\nbin_dirs = [\n  '/a',\n]\n";
    let right = corrected(twice).unwrap();
    assert!(!right.contains("bin_dir =") && right.contains("bin_dirs = [\n  '/a',\n]"));
    let over_lines = "[x.cni]\nbin_dirs = [\n  ''\n]\nkeep = 1\n";
    assert_eq!(corrected(over_lines).unwrap(), "[x.cni]\nkeep = 1\n");
    for good in ["[a.cni]\nbin_dir = '/opt/cni/bin'\n", "[a.cni]\nbin_dirs = ['/x']\n", ""] {
        assert_eq!(corrected(good), None);
    }
}
