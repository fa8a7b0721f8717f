//! The small commands, and mistakes on the command line.

mod common;

use common::Machine;

#[test]
fn test_e02_the_version_is_said_on_the_standard_output() {
    let machine = Machine::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(machine.run(&["version"]).out, format!("{version}\n"));
    let ended = machine.run(&["--version"]);
    assert_eq!((ended.code, ended.out), (0, format!("bringup-node version {version}\n")));
}

#[test]
fn test_e03_a_wrong_command_is_told_on_the_standard_error() {
    let machine = Machine::new();
    for (arguments, said) in
        [(vec![], "missing command argument"), (vec!["bogus"], "unknown command: bogus")]
    {
        let ended = machine.run(&arguments);
        assert_eq!((ended.code, ended.out.as_str()), (64, ""));
        assert!(ended.err.starts_with(said) && ended.err.contains("Usage:"));
        let legacy = [&["--exit-code=legacy"], arguments.as_slice()].concat();
        assert_eq!(machine.run(&legacy).code, 1);
    }
    assert!(!machine.has("provision.complete"));
}

#[test]
fn test_e03_a_wrong_flag_of_provision_leaves_a_result_so_that_nobody_waits() {
    let machine = Machine::new();
    let ended = machine.run(&["provision", "--nope"]);
    assert!(ended.err.starts_with("Incorrect Usage: flag provided but not defined: -nope\n"));
    assert_eq!(ended.code, 240);
    assert_eq!(machine.result()["ExitCode"], "240");
    assert_eq!(machine.wait().code, 240);
}

#[test]
fn help_is_an_answer() {
    let ended = Machine::new().run(&["help"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert!(ended.out.contains("provision-wait"));
}

#[test]
fn without_a_report_there_is_none_to_print() {
    assert_eq!(Machine::new().run(&["report"]).code, 66);
}

#[test]
fn hotfixes_stop_nothing() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["check-hotfix", "extra"]).code, 0);
    assert_eq!(machine.run(&["download-hotfix"]).code, 0);
    let ended = machine.run(&["download-hotfix", "x"]);
    assert_eq!(ended.code, 1);
    assert_eq!(ended.err, "unexpected download-hotfix arguments: x\n");
}

#[test]
fn a_launch_without_anything_delivered_ends_well_unless_it_is_required() {
    let machine = Machine::new();
    let ended = machine.run(&["launch"]);
    assert_eq!(ended.code, 0);
    assert!(ended.out.starts_with("Gracefully exit aks-node-controller"));
    assert!(!machine.has("provision.complete"));
    assert_eq!(machine.run(&["launch", "--require-config"]).code, 244);
    let waited = machine.wait();
    assert_eq!(waited.code, 244);
    assert_eq!(waited.summary()["cause"], "ProvisionerNeverStarted");
}

#[test]
fn a_launch_goes_on_after_the_limit_on_the_hostname_and_hands_features_on() {
    let machine = Machine::new();
    machine.file("/etc/hostname", "a-name-that-no-machine-has\n");
    machine.file(
        "/opt/azure/containers/enabled_features.sh",
        "ENABLE_X=yes\nLD_PRELOAD=/x.so\nPATH=/evil\nBASH_ENV=/x\n",
    );
    machine.script(
        "env >$R/seen; echo '{\"ExitCode\":\"0\"}' >$L/aks/provision.json; touch $C/provision.complete",
    );
    assert_eq!(machine.run(&["launch", "--hostname-timeout=10ms"]).code, 0);
    let seen = machine.read("/seen");
    assert!(seen.contains("ENABLE_X=yes\n"));
    assert!(!seen.contains("LD_PRELOAD") && !seen.contains("/evil") && !seen.contains("BASH_ENV"));
    assert!(machine.read("/var/log/azure/aks-node-controller.log").contains("hostname"));
}
