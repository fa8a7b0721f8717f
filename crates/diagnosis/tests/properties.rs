//! What holds for any text.

use std::fmt::Write as _;

use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, diagnose};
use proptest::prelude::*;

fn of(text: &str) -> Diagnosis {
    diagnose(&Evidence::of_text(text))
}

fn of_console(text: &str) -> Diagnosis {
    let pieces = vec![Piece::seen(Source::SerialLog, "serial log", text)];
    diagnose(&Evidence { pieces, ..Evidence::default() })
}

/// What must not change when only the form of the evidence does.
fn essence(diagnosis: &Diagnosis) -> (String, Option<i32>, Confidence) {
    (diagnosis.cause.reason.to_string(), diagnosis.exit_code, diagnosis.cause.confidence)
}

/// An extension message around a few lines of a log.
fn message(code: i32, lines: &[&str]) -> String {
    let output = serde_json::to_string(&lines.join("\n")).expect("text is JSON");
    format!(
        "failed to execute command: command terminated with exit status=1\n[stdout]\n{{ \"ExitCode\": \"{code}\", \"Output\": {output}, \"Error\": \"\" }}\n\n[stderr]\n"
    )
}

const FAILURES: &[(i32, &str)] = &[
    (211, "timeout: failed to run command 'oras': No such file or directory"),
    (31, "curl: (23) Failure writing output to destination"),
    (50, "curl: (6) Could not resolve host: mcr.example.com"),
    (51, "curl: (7) Failed to connect to a.hcp.eastus.azmk8s.io port 443: Connection refused"),
    (124, "Waiting for release of apt locks"),
    (34, "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.6"),
];

const NOISE: &[&str] = &[
    "+ local path=/opt/azure/containers",
    "Setting up packages (1.1-1) ...",
    "[    1.004711] systemd[1]: Hostname set to <node-1>.",
    "Cloud-init v. 25.1 running 'modules:config'",
    "100 45.1M 100 45.1M 0 0 22.4M",
    "Loaded: loaded (/usr/lib/systemd/system/chronyd.service; enabled)",
];

/// Lines of a console on which no bootstrap ends.
const CONSOLE: &[&str] = &[
    "[    0.000000] Linux version 6.8.0-1021-azure",
    "[    4.2] cloud-init[611]: Cloud-init v. 25.1 running 'init-local' at Mon, 02 Mar 2026",
    "[   12.4] cloud-init[1045]: Cloud-init v. 25.1 running 'modules:final' at Mon, 02 Mar 2026",
    "[   40.0] cloud-init[1045]: dial tcp 192.0.2.4:6443: connect: connection refused",
    "[   41.0] cloud-init[1045]: [kubelet-start] Starting the kubelet",
    "[   58.2] cloud-init[1045]: tar: bridge: Cannot write: No space left on device",
    "[   58.0] cloud-init[1045]: This node has joined the cluster:",
    "[   61.1] cloud-init[1045]: \t[ERROR Port-10250]: Port 10250 is in use",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic_and_the_output_is_json(text in any::<String>()) {
        let json = serde_json::to_string(&of(&text)).expect("a diagnosis is JSON");
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
    }

    #[test]
    fn no_console_makes_it_panic_and_without_an_end_nothing_is_certain(
        lines in prop::collection::vec(0..CONSOLE.len(), 0..12), more in any::<String>(),
    ) {
        let lines: Vec<&str> = lines.iter().map(|index| CONSOLE[*index]).collect();
        let found = of_console(&lines.join("\r\n"));
        prop_assert!(found.cause.confidence < Confidence::High);
        of_console(&format!("{}\r\n{more}", lines.join("\r\n")));
    }

    #[test]
    fn no_cut_of_a_message_makes_it_panic(
        which in 0..FAILURES.len(), from in 0usize..400, to in 0usize..400,
    ) {
        let (code, line) = FAILURES[which];
        let text = message(code, &[line, "+ exit"]);
        let cut: String = text.chars().skip(from).take(to).collect();
        of(&cut);
    }

    #[test]
    fn noise_does_not_change_a_verdict(
        which in 0..FAILURES.len(),
        before in prop::collection::vec(0..NOISE.len(), 0..8),
        after in prop::collection::vec(0..NOISE.len(), 0..8),
    ) {
        let (code, line) = FAILURES[which];
        let plain = of(&message(code, &[line]));
        let mut lines: Vec<&str> = before.iter().map(|index| NOISE[*index]).collect();
        lines.push(line);
        lines.extend(after.iter().map(|index| NOISE[*index]));
        prop_assert_eq!(essence(&of(&message(code, &lines))), essence(&plain));
    }

    #[test]
    fn line_endings_and_colours_do_not_change_a_verdict(
        which in 0..FAILURES.len(), colour in 0u8..8,
    ) {
        let (code, line) = FAILURES[which];
        let text = format!("{line}\n+ exit {code}\n");
        let plain = essence(&of(&text));
        prop_assert_eq!(&essence(&of(&text.replace('\n', "\r\n"))), &plain);
        let coloured = text.lines().fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "\u{1b}[3{colour}m{line}\u{1b}[0m");
            all
        });
        prop_assert_eq!(&essence(&of(&coloured)), &plain);
    }

    #[test]
    fn the_order_of_the_pieces_does_not_change_a_verdict(
        first in 0..FAILURES.len(), second in 0..FAILURES.len(), third in 0..FAILURES.len(),
    ) {
        let piece = |which: usize| {
            let (code, line) = FAILURES[which];
            Piece::seen(Source::Text, "piece", &message(code, &[line]))
        };
        let verdict = |order: [usize; 3]| {
            let pieces = order.map(piece).to_vec();
            essence(&diagnose(&Evidence { pieces, ..Evidence::default() }))
        };
        let usual = verdict([first, second, third]);
        prop_assert_eq!(&verdict([third, second, first]), &usual);
        prop_assert_eq!(&verdict([second, first, third]), &usual);
    }

    #[test]
    fn escaping_does_not_change_a_verdict(which in 0..FAILURES.len(), depth in 0usize..3) {
        let (code, line) = FAILURES[which];
        let text = message(code, &["+ step", line, "+ exit"]);
        let escaped = (0..depth).fold(text.clone(), |text, _| {
            serde_json::json!({ "message": text }).to_string()
        });
        prop_assert_eq!(essence(&of(&escaped)), essence(&of(&text)));
    }
}

#[test]
fn a_long_line_of_almost_signs_comes_to_an_end() {
    let line = "+ [[ x == *\\u\\n\\a\\u* ]] \"ExitCode\" exit status= ( curl: (7 ] lookup ";
    assert_eq!(of(&line.repeat(40_000)).exit_code, None);
}

#[test]
fn a_long_console_of_the_same_line_comes_to_an_end() {
    for line in CONSOLE {
        of_console(&format!("{line}\r\n").repeat(20_000));
    }
}

/// Failures and what a boot achieved, thousands of both: each pair must not cost a search of the text.
#[test]
fn many_failures_beside_many_milestones_come_to_an_end() {
    const FAILURES: [&str; 3] = [
        "tar: bridge: Cannot write: No space left on device",
        "curl: (28) Failed to connect to mcr.microsoft.com port 443: Connection timed out",
        "cni plugin not initialized",
    ];
    const MILESTONES: [&str; 5] = [
        "\"Successfully registered node\" node=\"node-1\"",
        "node-1   Ready    <none>   8m    v1.33.5",
        "* Connected to mcr.microsoft.com (192.0.2.9) port 443",
        "  \"provisioningState\": \"Succeeded\",",
        "[kubelet-start] Starting the kubelet",
    ];
    for failure in FAILURES {
        for milestone in MILESTONES {
            let pair = format!("{failure}\n{milestone}\n");
            of(&pair.repeat(10_000));
            of(&format!("{}{milestone}\n", format!("{failure}\n").repeat(20_000)));
        }
    }
}

#[test]
fn a_bootstrap_that_ran_out_of_time_names_the_step_that_was_slow() {
    let log = "+ logs_to_events AKS.CSE.installDeps installDeps\n+ retrycmd_if_failure 10 5 120 apt-get install conntrack\nCSE timeout approaching, exiting early.\n+ exit 9\n";
    let diagnosis = of(log);
    assert_eq!(diagnosis.cause.reason.reason(), "TimeBudgetExhausted");
    assert!(diagnosis.summary.contains("in AKS.CSE.installDeps"), "{}", diagnosis.summary);
}

#[test]
fn a_bare_211_is_no_network_problem_and_says_what_it_hides() {
    let diagnosis = of(&message(211, &["+ exit 211"]));
    assert_eq!(diagnosis.cause.reason.reason(), "Unknown");
    assert!(diagnosis.summary.contains("also hides a missing oras"), "{}", diagnosis.summary);
    assert!(!diagnosis.looked_at.is_empty());
}

#[test]
fn the_nodes_own_finding_wins_over_text_from_outside() {
    let text = "exit status=1\ncurl: (28) Connection timed out\nBRINGUP-NODE/1 {\"v\":1,\"exit\":232,\"name\":\"ERR_ORAS_BINARY_NOT_FOUND\",\"cause\":\"BinaryMissing\",\"conf\":\"high\",\"ev\":[\"oras: not in PATH\"],\"pf\":[\"oras:not in PATH\"],\"end\":1}\n";
    let diagnosis = of(text);
    assert_eq!(essence(&diagnosis), ("BinaryMissing".to_owned(), Some(232), Confidence::High));
    assert_eq!(diagnosis.constant.as_deref(), Some("ERR_ORAS_BINARY_NOT_FOUND"));
    assert!(diagnosis.summary.contains("oras is not in PATH"), "{}", diagnosis.summary);
}

#[test]
fn a_program_whose_installation_failed_is_missing_because_of_that() {
    let log = "curl: (6) Could not resolve host: pkgs.example.com\npart-001: line 14: kubeadm: command not found\n";
    assert_eq!(of(log).cause.reason.reason(), "DnsFailure");
    let log = "part-001: line 14: kubeadm: command not found\n";
    assert_eq!(of(log).cause.reason.reason(), "BinaryMissing");
}
