//! Results, as the waiter uses them.

mod common;

use common::Machine;

#[test]
fn test_e11_a_failed_result_comes_out_bounded_with_its_code_cause_and_proof() {
    let cases = [
        (
            "211",
            "+ logs_to_events AKS.CSE.orasLogin login\ntimeout: failed to run command 'oras': No such file or directory\n+ exit 211",
            "BinaryMissing",
        ),
        ("31", "tar: Cannot write: No space left on device\n+ exit 31", "DiskFull"),
        ("31", "curl: (6) Could not resolve host: pkgs.example.com\n+ exit 31", "DnsFailure"),
        ("1", "kubelet is in a failed state\n+ exit", "KubeletFailure"),
    ];
    for (code, output, cause) in cases {
        let machine = Machine::new();
        let result = serde_json::json!({"ExitCode": code, "Output": output, "Error": "", "ExecDuration": "12"});
        machine.leave_result(&result.to_string());
        let ended = machine.wait();
        assert_eq!(ended.code.to_string(), code);
        let document = ended.document();
        assert_eq!(document["ExitCode"], code);
        assert_eq!(document["Bringup"]["cause"], cause, "{document}");
        assert_eq!(document["Bringup"]["took"], 12);
        assert_eq!(ended.summary()["cause"], cause);
        assert!(ended.err.starts_with(&format!("provision failed: exitCode={code} ")));
    }
}

#[test]
fn test_e12_an_output_full_of_escapes_keeps_the_bounds_and_its_end() {
    let machine = Machine::new();
    let output = "\"\\".repeat(1_500);
    machine.leave_result(&serde_json::json!({"ExitCode": "50", "Output": output}).to_string());
    let ended = machine.wait();
    assert_eq!(ended.code, 50);
    let document = ended.document();
    let kept = document["Output"].as_str().unwrap();
    assert!(!kept.is_empty() && output.ends_with(kept));
    ended.summary();
}

#[test]
fn test_e13_the_words_at_which_others_cut_are_never_printed() {
    let machine = Machine::new();
    let output = "see [stderr] and [stdout] below";
    machine.leave_result(&serde_json::json!({"ExitCode": "50", "Output": output}).to_string());
    assert_eq!(machine.wait().document()["Output"], output);
}

#[test]
fn test_e14_an_unreadable_result_is_247_and_a_number_is_a_code() {
    for (text, said) in [
        ("", "parse provision.json: "),
        ("{}", "missing ExitCode in provision.json"),
        (r#"{"ExitCode":"x"}"#, "invalid ExitCode in provision.json: x"),
    ] {
        let machine = Machine::new();
        machine.leave_result(text);
        let ended = machine.wait();
        assert_eq!(ended.code, 247);
        assert!(ended.err.starts_with(said), "{}", ended.err);
        assert_eq!(ended.document()["ExitCode"], "247");
        assert_eq!(ended.summary()["name"], "RESULT_UNREADABLE");
    }
    let machine = Machine::new();
    machine.leave_result(r#"{"ExitCode":211}"#);
    assert_eq!(machine.wait().code, 211);
}

#[test]
fn test_e15_the_end_without_a_result_is_247() {
    let machine = Machine::new();
    machine.file("/opt/azure/containers/provision.complete", "");
    let ended = machine.wait();
    assert_eq!(ended.code, 247);
    assert!(ended.err.starts_with(
        "failed to read provision.json: open /var/log/azure/aks/provision.json: no such file or directory. One reason could be"
    ));
}

#[test]
fn a_success_is_0_and_its_summary_has_no_cause() {
    let machine = Machine::new();
    machine.leave_result(r#"{"ExitCode":"0","Output":"","Error":""}"#);
    let ended = machine.wait();
    assert_eq!((ended.code, ended.err.lines().count()), (0, 1));
    assert_eq!(ended.summary()["cause"], serde_json::Value::Null);
}

#[test]
fn with_legacy_every_failure_is_1_and_a_signal_is_255_without() {
    let machine = Machine::new();
    machine.leave_result(r#"{"ExitCode":"-1","Error":"signal: killed"}"#);
    assert_eq!(machine.wait().code, 255);
    assert_eq!(machine.run(&["provision-wait", "--exit-code=legacy"]).code, 1);
}

#[test]
fn a_secret_in_a_result_is_not_printed() {
    let machine = Machine::new();
    let secret = "abcdef.0123456789abcdef";
    let output = format!("+ TLS_BOOTSTRAP_TOKEN={secret}\n+ exit 50");
    machine.leave_result(&serde_json::json!({"ExitCode": "50", "Output": output}).to_string());
    let ended = machine.wait();
    assert!(!ended.out.contains(secret) && !ended.err.contains(secret), "{}", ended.out);
    assert!(!machine.read("/var/log/azure/aks-node-controller.log").contains(secret));
}
