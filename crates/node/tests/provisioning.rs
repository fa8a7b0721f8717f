//! Attempts to provision a node.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use common::{Ended, Machine, pipe};

const SUCCESS: &str = "echo '{\"ExitCode\":\"0\",\"Output\":\"\"}' >$L/aks/provision.json; touch $C/provision.complete";

#[test]
fn test_e04_without_anything_to_run_the_result_is_240_and_for_root_only() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["provision"]).code, 240);
    let result = machine.result();
    assert_eq!(result["ExitCode"], "240");
    assert_eq!(result["Error"], "--provision-config or --nbc-cmd is required");
    assert!(machine.has("provision.complete") && machine.has("provision.failed"));
    for path in ["/var/log/azure/aks/provision.json", "/opt/azure/containers/provision.complete"] {
        let mode = fs::metadata(machine.at(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn test_e09_scripts_that_end_before_any_result_give_theirs() {
    let machine = Machine::new();
    let ended = machine.provision("echo out; echo err >&2; exit 77", &[]);
    assert_eq!((ended.code, ended.out.as_str()), (77, "out\n"));
    assert_eq!(ended.err, "err\n");
    let result = machine.result();
    assert_eq!((&result["ExitCode"], &result["Error"]), (&"77".into(), &"exit status 77".into()));
    assert_eq!(result["Output"], "out\nerr\n");

    let machine = Machine::new();
    assert_eq!(machine.provision("kill -9 $$", &[]).code, 255);
    let result = machine.result();
    assert_eq!((&result["ExitCode"], &result["Error"]), (&"-1".into(), &"signal: killed".into()));
    assert_eq!(machine.wait().code, 255);
}

#[test]
fn what_the_scripts_leave_running_does_not_hold_their_end_up() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script("echo said; (read x <$R/wait; touch $R/went-on) & exit 77");
    let flag = format!("--nbc-cmd={}", script.display());
    let mut command = machine.command(&["provision", &flag]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(77));
    assert_eq!(machine.result()["Output"], "said\n");
    fs::write(machine.at("/wait"), "go\n").unwrap();
    while !machine.at("/went-on").exists() {
        std::thread::yield_now();
    }
}

#[test]
fn test_e10_what_the_scripts_wrote_is_left_alone() {
    let machine = Machine::new();
    let written = r#"{ "ExitCode": "211", "Output": "x",  "Error": "" }"#;
    let ended =
        machine.provision(&format!("echo '{written}' >$L/aks/provision.json; exit 211"), &[]);
    assert_eq!(ended.code, 211);
    assert_eq!(machine.read("/var/log/azure/aks/provision.json"), format!("{written}\n"));
    let mark = machine.json("/opt/azure/containers/provision.failed");
    assert_eq!((&mark["exit"], &mark["machine"]), (&211.into(), &"aaaa-1".into()));
    assert!(machine.has("provision.complete") && !machine.has("provision.succeeded"));
    assert_eq!(machine.run(&["report", "--json"]).code, 0);
}

#[test]
fn test_e16_a_success_of_another_machine_does_not_hide_a_failure() {
    let machine = Machine::new();
    assert_eq!(machine.provision(SUCCESS, &[]).code, 0);
    machine.file("/sys/class/dmi/id/product_uuid", "BBBB-2\n");
    assert_eq!(machine.run(&["provision", "--provision-config=/nowhere"]).code, 240);
    assert_eq!(machine.wait().code, 240);
    let mut previous = fs::read_dir(machine.at("/var/lib/bringup-node/previous")).unwrap();
    let old = previous.next().unwrap().unwrap().path().join("provision.json");
    assert!(fs::read_to_string(old).unwrap().contains("\"0\""));
}

#[test]
fn test_e17_a_success_of_unknown_origin_counts_unless_the_disk_was_copied() {
    let machine = Machine::new();
    machine.leave_result(r#"{"ExitCode":"0"}"#);
    assert_eq!(machine.provision("touch $R/ran; exit 9", &[]).code, 0);
    assert!(!machine.at("/ran").exists());
    machine.file("/var/lib/cloud/data/instance-id", "new\n");
    machine.file("/var/lib/cloud/data/previous-instance-id", "old\n");
    assert_eq!(machine.provision("touch $R/ran; exit 9", &[]).code, 9);
    assert!(machine.at("/ran").exists());
}

#[test]
fn test_e18_after_a_failed_attempt_the_next_one_begins_clean() {
    let machine = Machine::new();
    assert_eq!(machine.provision("exit 9", &[]).code, 9);
    let script = format!("test -e $C/provision.complete && exit 8; {SUCCESS}");
    assert_eq!(machine.provision(&script, &[]).code, 0);
    assert!(machine.has("provision.succeeded") && !machine.has("provision.failed"));
}

#[test]
fn test_e19_after_a_success_a_reboot_runs_nothing() {
    let machine = Machine::new();
    assert_eq!(machine.provision(SUCCESS, &[]).code, 0);
    let before = machine.read("/var/log/azure/aks/provision.json");
    machine.file("/proc/sys/kernel/random/boot_id", "fedcba9876543210\n");
    assert_eq!(machine.provision("touch $R/ran; exit 9", &[]).code, 0);
    assert!(!machine.at("/ran").exists());
    assert_eq!(machine.read("/var/log/azure/aks/provision.json"), before);
}

#[test]
#[cfg(debug_assertions)]
fn test_e25_a_panic_is_a_result_and_no_success() {
    let machine = Machine::new();
    let script = machine.script("exit 0");
    let flag = format!("--nbc-cmd={}", script.display());
    let output =
        machine.command(&["provision", &flag]).env("BRINGUP_NODE_TEST_PANIC", "1").output();
    assert_eq!(Ended::of(&output.unwrap()).code, 240);
    let error = machine.result()["Error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("panic during provisioning: as asked for"), "{error}");
    let events = machine.events();
    assert!(!events.iter().any(|event| event["Message"].as_str().unwrap().contains("Completed")));
    assert!(events.iter().any(|event| event["EventLevel"] == "Error"));
}

#[test]
fn test_e26_what_would_change_the_shell_is_not_inherited_and_a_proxy_is() {
    let machine = Machine::new();
    let script = machine.script(&format!("env >$R/seen; {SUCCESS}"));
    let flag = format!("--nbc-cmd={}", script.display());
    let mut command = machine.command(&["provision", &flag]);
    command.env("LD_PRELOAD", "").env("BASH_ENV", "/x").env("HTTP_PROXY", "http://p.example:1");
    assert_eq!(Ended::of(&command.output().unwrap()).code, 0);
    let seen = machine.read("/seen");
    assert!(!seen.contains("LD_PRELOAD") && !seen.contains("BASH_ENV"));
    assert!(seen.contains("HTTP_PROXY=http://p.example:1"));
}

#[test]
fn test_e27_of_two_at_once_one_runs_and_both_end_with_its_code() {
    let machine = Machine::new();
    pipe(&machine.at("/wait"));
    let script = machine.script("echo x >>$R/ran; read x <$R/wait; exit 77");
    let flag = format!("--nbc-cmd={}", script.display());
    let first = machine.start(&["provision", &flag]);
    while machine.read("/ran").is_empty() {
        std::thread::yield_now();
    }
    let second = machine.start(&["provision", &flag]);
    while !machine.read("/var/log/azure/aks-node-controller.log").contains("another provision") {
        std::thread::yield_now();
    }
    fs::write(machine.at("/wait"), "go\n").unwrap();
    for child in [first, second] {
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(77));
    }
    assert_eq!(machine.read("/ran"), "x\n");
}

#[test]
fn test_e32_a_result_that_has_no_place_on_disk_goes_to_run_and_comes_out() {
    let machine = Machine::new();
    machine.file("/var/log/azure/aks", "a file where a folder should be");
    assert_eq!(machine.run(&["provision"]).code, 240);
    assert_eq!(machine.json("/run/bringup-node/result.json")["ExitCode"], "240");
    let ended = machine.wait();
    assert_eq!((ended.code, &ended.document()["ExitCode"]), (240, &"240".into()));
}

#[test]
fn test_e33_a_flood_of_output_is_not_kept() {
    let machine = Machine::new();
    let script = machine.script(
        "head -c 200000000 /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >$R/peak; exit 3",
    );
    let flag = format!("--nbc-cmd={}", script.display());
    let mut command = machine.command(&["provision", &flag]);
    assert_eq!(command.stdout(Stdio::null()).status().unwrap().code(), Some(3));
    let peak = machine.read("/peak");
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 50 * 1024, "{peak}");
    assert!(machine.result()["Output"].as_str().unwrap().len() <= 3_000);
}

#[test]
fn test_e37_a_secret_of_the_command_is_written_nowhere_else() {
    let machine = Machine::new();
    let secret = "abcdef.0123456789abcdef";
    let script = format!("echo \"TLS_BOOTSTRAP_TOKEN={secret}\"; exit 5");
    assert_eq!(machine.provision(&script, &[]).code, 5);
    let given = machine.at("/opt/azure/containers/aks-node-controller-nbc-cmd.sh");
    assert!(!machine.everything_but(&given).contains(secret));
}

#[test]
fn the_failing_step_has_an_event_of_its_own() {
    let machine = Machine::new();
    machine.provision(
        "echo '+ logs_to_events AKS.CSE.installX f' >$L/cluster-provision.log; exit 7",
        &[],
    );
    let events = machine.events();
    let step = events.iter().find(|event| event["TaskName"] == "AKS.CSE.installX").unwrap();
    assert_eq!(step["EventLevel"], "Error");
    assert!(step["Message"].as_str().unwrap().starts_with("exit=7 "));
}

#[test]
fn a_dry_run_writes_nothing_but_the_log() {
    let machine = Machine::new();
    assert_eq!(machine.provision("touch $R/ran", &["--dry-run"]).code, 0);
    assert!(!machine.at("/ran").exists() && !machine.at("/var/lib/bringup-node").exists());
    let log = machine.read("/var/log/azure/aks-node-controller.log");
    assert!(log.contains("\"dry-run\"") && log.contains("/bin/bash -- "));
}
