//! Checks before the scripts run.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::{Ended, Machine};

const REGISTRY: &str = "export BOOTSTRAP_PROFILE_CONTAINER_REGISTRY_SERVER=\"reg.example.io\"";
const PLACES: [&str; 3] = ["/usr/local/bin/oras", "/usr/bin/oras", "/opt/bin/oras"];

#[test]
fn test_e39_without_oras_nothing_is_run_and_everything_that_shows_it_is_recorded() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    let ended = machine.provision(&format!("{REGISTRY}; touch $R/ran"), &[]);
    assert_eq!(ended.code, 232);
    assert!(!machine.at("/ran").exists());
    let result = machine.result();
    assert_eq!(result["ExitCode"], "232");
    let error = result["Error"].as_str().unwrap();
    assert_eq!(
        error,
        "ERR_ORAS_BINARY_NOT_FOUND: oras absent; PATH=/usr/bin:/bin; probed /usr/local/bin/oras absent, /usr/bin/oras absent, /opt/bin/oras absent; package: none"
    );
    let report = machine.json("/var/log/bringup-node/provision-report.json");
    assert_eq!(report["proposed_code"], 232);
    let check = &report["preflight"][0];
    assert_eq!((&check["check"], &check["state"]), (&"oras".into(), &"fatal".into()));
    assert_eq!(check["data"]["PATH"], "/usr/bin:/bin");
    assert_eq!(check["data"]["probed"].as_array().unwrap().len(), 3);
    assert!(check["data"]["osRelease"].as_str().unwrap().contains("ID=azurelinux"));
    assert_eq!(check["data"]["package"], "none");
    let waited = machine.wait();
    assert_eq!(waited.code, 232);
    let summary = waited.summary();
    assert_eq!(summary["name"], "ERR_ORAS_BINARY_NOT_FOUND");
    assert_eq!(
        (&summary["cause"], &summary["pf"][0]),
        (&"BinaryMissing".into(), &"oras:absent".into())
    );
}

#[test]
fn test_e39_the_number_of_a_missing_oras_can_be_set_and_depends_on_the_system() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    let set = "--code=ERR_ORAS_BINARY_NOT_FOUND=251";
    assert_eq!(machine.provision(REGISTRY, &[set]).code, 251);
    machine.file("/etc/os-release", "ID=flatcar\n");
    assert_eq!(machine.provision(REGISTRY, &[]).code, 250);
    machine.file("/etc/bringup-node/config.toml", "[codes]\nERR_ORAS_BINARY_NOT_FOUND = 249\n");
    assert_eq!(machine.provision(REGISTRY, &[]).code, 249);
}

#[test]
fn test_e40_oras_that_is_not_in_path_is_put_there_and_one_without_its_mode_stops_the_run() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    machine.program("/opt/bin/oras", 0o755);
    let script = format!("{REGISTRY}; echo $PATH >$R/path; exit 4");
    assert_eq!(machine.provision(&script, &[]).code, 4);
    assert!(machine.read("/path").trim_end().split(':').any(|part| part == "/opt/bin"));
    let mark = machine.json("/opt/azure/containers/provision.failed");
    assert_eq!(mark["pf"][0], "oras:not-in-path");

    fs::set_permissions(machine.at("/opt/bin/oras"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(machine.provision(&script, &[]).code, 232);
    let error = machine.result()["Error"].as_str().unwrap().to_owned();
    assert!(error.contains("oras not executable at /opt/bin/oras (mode 0644)"), "{error}");
}

#[test]
fn test_e41_where_no_registry_is_configured_oras_is_not_needed() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    assert_eq!(machine.provision("exit 6", &[]).code, 6);
    let mark = machine.json("/opt/azure/containers/provision.failed");
    assert_eq!(mark["pf"][0], "oras:absent");
}

#[test]
fn test_e41_with_report_the_scripts_run_and_their_code_comes_out_with_the_true_cause() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    let script = format!(
        "{REGISTRY}; echo '{{\"ExitCode\":\"211\",\"Output\":\"+ exit 211\"}}' >$L/aks/provision.json; exit 211"
    );
    assert_eq!(machine.provision(&script, &["--preflight=report"]).code, 211);
    let summary = machine.wait().summary();
    assert_eq!((&summary["exit"], &summary["cause"]), (&211.into(), &"BinaryMissing".into()));
}

#[test]
fn a_missing_shell_stops_the_run_with_248() {
    let machine = Machine::new();
    machine.remove("/usr/bin/systemctl");
    assert_eq!(machine.provision("touch $R/ran", &[]).code, 248);
    let error = machine.result()["Error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("PREFLIGHT_REFUSED: binaries: systemctl absent"), "{error}");
    assert!(!machine.at("/ran").exists());
}

fn only_oras(machine: &Machine) -> Ended {
    machine.run(&["preflight", "--only", "oras"])
}

#[test]
fn only_oras_has_three_answers_to_what_is_wrong_and_writes_nothing() {
    let machine = Machine::new();
    assert_eq!(only_oras(&machine).code, 0);
    machine.remove("/usr/bin/oras");
    let absent = only_oras(&machine);
    machine.program("/opt/bin/oras", 0o755);
    let elsewhere = only_oras(&machine);
    machine.program("/opt/bin/oras", 0o644);
    let not_executable = only_oras(&machine);
    assert_eq!([absent.code, elsewhere.code, not_executable.code], [232; 3]);
    assert!(absent.out.contains("oras absent; PATH=/usr/bin:/bin;"), "{}", absent.out);
    assert!(PLACES.iter().all(|place| absent.out.contains(place)));
    assert!(absent.out.contains("ID=azurelinux") && absent.out.contains("package: none"));
    assert!(elsewhere.out.contains("oras not in PATH but at /opt/bin/oras"));
    assert!(!elsewhere.out.contains(": oras absent;"));
    assert!(not_executable.out.contains("oras not executable at /opt/bin/oras"));
    machine.file("/etc/os-release", "ID=flatcar\n");
    assert_eq!(only_oras(&machine).code, 250);
    for path in ["/var/log/azure", "/run/bringup-node", "/var/lib/bringup-node"] {
        assert!(!machine.at(path).exists(), "{path}");
    }
}

#[test]
fn a_package_database_that_hangs_is_given_up_before_the_check_is_late() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    machine.program("/usr/bin/rpm", 0o755);
    // Longer than the limit for the package database, and shorter than the limit of all checks.
    let passes = machine.time_passes(500);
    let hangs = format!("#!/bin/bash\n{passes}\nread x < <(tail -f /dev/null --pid=$$)\n");
    machine.file("/usr/bin/rpm", &hangs);
    let ended = only_oras(&machine);
    assert_eq!(ended.code, 232);
    assert!(ended.out.contains("package: rpm said nothing"), "{}", ended.out);
}

#[test]
fn the_package_database_is_asked() {
    let machine = Machine::new();
    machine.remove("/usr/bin/oras");
    machine.program("/usr/bin/rpm", 0o755);
    machine.file("/usr/bin/rpm", "#!/bin/bash\necho bash-5.2; echo oras-1.3.0-1.azl3\n");
    assert!(only_oras(&machine).out.contains("package: oras-1.3.0-1.azl3"));
}
