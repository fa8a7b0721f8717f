//! Two sources that agree make a cause surer; one that is written down twice does not.

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use proptest::prelude::*;

/// A source, and what it says.
type Said<'a> = (Source, &'a str);

fn of(pieces: &[Said<'_>]) -> Diagnosis {
    let seen = |(index, (source, text)): (usize, &Said<'_>)| {
        Piece::seen(*source, &format!("{} {index}", source.words()), text)
    };
    let pieces = pieces.iter().enumerate().map(seen).collect();
    diagnose(&Evidence { pieces, ..Evidence::default() })
}

/// The cause and how sure it is, in whatever order the pieces come.
fn judged(pieces: &[Said<'_>]) -> (Cause, Confidence) {
    let found = of(pieces);
    assert_eq!(found.verdict, Verdict::Failed, "{}", found.summary);
    let judged = (found.cause.reason, found.cause.confidence);
    let turned: Vec<Said<'_>> = pieces.iter().rev().copied().collect();
    let again = of(&turned).cause;
    assert_eq!((again.reason, again.confidence), judged, "the order of the pieces matters");
    judged
}

/// What `bringup-node wait` prints last.
fn summary(cause: Cause, confidence: &str, quoted: &str, end: &str) -> String {
    format!(
        "BRINGUP-NODE/1 {{\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"{cause}\",\"conf\":\"{confidence}\",\"ev\":[{quoted}]{end}"
    )
}

const WHOLE: &str = ",\"end\":1}";
/// Lines that point to a cause without speaking for it.
const GUESSES: [&str; 2] = [
    "Enable failed: exit status=1\nE: timed out waiting for the condition",
    "[   60.1] cloud-init[9]: rpc: context deadline exceeded",
];
/// Lines that speak for a cause without proving it.
const LIKELY: [&str; 2] = [
    "Enable failed: exit status=1\nlocaldns.service failed",
    "[   60.1] cloud-init[9]: resolver: SERVFAIL for pkgs.contoso.example",
];
/// A line that proves that the same cause holds, of a console that shows no end.
const WAITING: &str =
    "[   60.1] cloud-init[9]: curl: (6) Could not resolve host: pkgs.contoso.example";

#[test]
fn two_sources_that_agree_make_a_guess_likely() {
    let [extension, console] = GUESSES;
    let cause = Cause::TimeBudgetExhausted;
    assert_eq!(judged(&[(Source::Extension, extension)]), (cause, Confidence::Low));
    let both = [(Source::Extension, extension), (Source::SerialLog, console)];
    assert_eq!(judged(&both), (cause, Confidence::Medium));
}

#[test]
fn two_sources_that_agree_make_what_is_likely_certain() {
    let [first, console] = LIKELY;
    for source in [Source::Extension, Source::RunCommand, Source::ScriptLog] {
        assert_eq!(judged(&[(source, first)]), (Cause::DnsFailure, Confidence::Medium));
        let both = [(source, first), (Source::SerialLog, console)];
        assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::High), "{source:?}");
    }
}

#[test]
fn pieces_of_one_kind_are_one_source() {
    let [first, second] = LIKELY;
    let one_voice = [Source::Extension, Source::ProvisionResult, Source::ScriptLog];
    for other in one_voice {
        let both = [(Source::Extension, first), (other, second)];
        assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium), "{other:?}");
    }
    let both = [(Source::SerialLog, first), (Source::SerialLog, second)];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn nobody_knows_who_speaks_in_a_text_of_an_unknown_kind() {
    let both = [(Source::Text, LIKELY[0]), (Source::SerialLog, LIKELY[1])];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn a_line_that_stands_in_two_places_is_one_source() {
    let line = "resolver: SERVFAIL for pkgs.contoso.example";
    let extension = format!("Enable failed: exit status=1\n[stdout]\n{line}\nmore\n");
    let escaped = serde_json::json!({ "message": extension }).to_string();
    let console = format!("[   60.1] cloud-init[9]: {line}");
    for text in [&extension, &escaped] {
        let both = [(Source::Extension, text.as_str()), (Source::SerialLog, console.as_str())];
        assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium), "{text}");
    }
    // Beside it stands a better line, which does not make the copy an original.
    let more = format!("{console}\n[   61.0] cloud-init[9]: localdns.service failed: no upstream");
    let both = [(Source::Extension, extension.as_str()), (Source::SerialLog, more.as_str())];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn an_error_about_an_extension_repeats_what_that_said() {
    let error = "VMExtensionProvisioningError: VM has reported a failure when processing extension 'vmssCSE'. Error message: SERVFAIL";
    let both = [(Source::Extension, LIKELY[0]), (Source::Arm, error)];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn the_same_summary_on_the_console_and_in_the_extension_is_one_source() {
    let line = summary(Cause::DnsFailure, "medium", "\"localdns.service failed\"", WHOLE);
    let console = format!("[   60.1] cloud-init[9]: started\n{line}\n");
    let both = [(Source::Extension, line.as_str()), (Source::SerialLog, console.as_str())];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
    let three = [both[0], both[1], (Source::RunCommand, line.as_str())];
    assert_eq!(judged(&three), (Cause::DnsFailure, Confidence::Medium));
    // Whatever part of it is known elsewhere.
    let line = summary(Cause::DnsFailure, "medium", "],\"pf\":[\"localdns failed\"", WHOLE);
    let console = format!("[   60.1] cloud-init[9]: started\n{line}\n");
    let both = [(Source::Extension, line.as_str()), (Source::SerialLog, console.as_str())];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn a_summary_on_the_console_does_not_take_from_what_the_console_says_itself() {
    let line = summary(Cause::DnsFailure, "medium", "\"localdns.service failed\"", WHOLE);
    let console = format!("{}\n{line}\n", LIKELY[1]);
    let both = [(Source::Extension, line.as_str()), (Source::SerialLog, console.as_str())];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::High));
    let read = "[   61.0] cloud-init[9]: localdns.service failed";
    let quoted = format!("{}\n{read}\n{line}\n", LIKELY[1]);
    let both = [(Source::Extension, line.as_str()), (Source::SerialLog, quoted.as_str())];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium), "the node read it there");
}

#[test]
fn what_the_node_prints_around_its_summary_is_no_second_source() {
    let line = summary(Cause::DnsFailure, "medium", "", WHOLE);
    let text = format!("[stdout]\n{line}\n[stderr]\ncurl: (6) Could not resolve host: a.b\n");
    assert_eq!(judged(&[(Source::Extension, &text)]), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn a_line_that_the_node_quotes_is_no_second_source() {
    let quoted = "\"resolver: SERVFAIL for pkgs.contoso.exam…\"";
    let line = summary(Cause::DnsFailure, "medium", quoted, WHOLE);
    let both = [(Source::Extension, line.as_str()), (Source::SerialLog, LIKELY[1])];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

#[test]
fn a_cut_summary_and_a_console_without_an_end_make_each_other_certain() {
    let cut = summary(Cause::DnsFailure, "high", "\"localdns.service failed\"", "");
    let node = (Source::Extension, cut.as_str());
    assert_eq!(judged(&[node]), (Cause::DnsFailure, Confidence::Medium));
    let console = (Source::SerialLog, WAITING);
    assert_eq!(judged(&[console]), (Cause::DnsFailure, Confidence::Medium));
    assert_eq!(judged(&[node, console]), (Cause::DnsFailure, Confidence::High));
    // Also where both stand on the console.
    let console = format!("{WAITING}\n{cut}\n");
    let alone = [(Source::SerialLog, console.as_str())];
    assert_eq!(judged(&alone), (Cause::DnsFailure, Confidence::High));
}

#[test]
fn two_that_saw_no_end_do_not_make_it_certain() {
    let script = "localdns.service failed";
    let both = [(Source::ScriptLog, script), (Source::SerialLog, WAITING)];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
    let ended = format!("{script}\nEnable failed: the script ended");
    let both = [(Source::Extension, ended.as_str()), (Source::SerialLog, WAITING)];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::High));
}

#[test]
fn a_source_that_points_elsewhere_raises_nothing_and_lowers_nothing() {
    let full = "[   60.1] cloud-init[9]: containerd.service: failed";
    let other = [(Source::Extension, LIKELY[0]), (Source::SerialLog, full)];
    assert_eq!(judged(&other), (Cause::DnsFailure, Confidence::Medium));
    // It shows the cause as well, and something that goes before it.
    let both = format!("{}\n[   61.0] cloud-init[9]: signal: killed", LIKELY[1]);
    let node = summary(Cause::DnsFailure, "medium", "", WHOLE);
    let other = [(Source::Extension, node.as_str()), (Source::SerialLog, both.as_str())];
    assert_eq!(judged(&other), (Cause::DnsFailure, Confidence::Medium));
    let third = [
        (Source::Extension, LIKELY[0]),
        (Source::SerialLog, LIKELY[1]),
        (Source::RunCommand, "containerd.service: failed"),
    ];
    assert_eq!(judged(&third), (Cause::DnsFailure, Confidence::High));
}

#[test]
fn a_line_that_calls_itself_a_warning_confirms_nothing() {
    let warning = "[   60.1] cloud-init[9]: WARNING: resolver: SERVFAIL for pkgs.contoso.example";
    let both = [(Source::Extension, LIKELY[0]), (Source::SerialLog, warning)];
    assert_eq!(judged(&both), (Cause::DnsFailure, Confidence::Medium));
}

/// The result of the AKS scripts.
fn result(code: i32, output: &str) -> String {
    format!(
        "Enable failed: exit status={code}\n[stdout]\n{{ \"ExitCode\": \"{code}\", \"Output\": \"{output}\", \"Error\": \"\" }}"
    )
}

#[test]
fn an_exit_code_that_has_one_cause_only_confirms_what_another_source_says() {
    let console = "[   60.1] cloud-init[9]: containerd.service: failed";
    let said = (Source::SerialLog, console);
    // 119 was seen with that cause only, 37 with another, 4 with several.
    for (code, confidence) in
        [(119, Confidence::High), (37, Confidence::Medium), (4, Confidence::Medium)]
    {
        let text = result(code, "no words");
        let both = [said, (Source::Extension, text.as_str())];
        assert_eq!(judged(&both), (Cause::ContainerRuntimeFailure, confidence), "{code}");
    }
    let alone = result(119, "containerd.service: failed");
    assert_eq!(
        judged(&[(Source::Extension, &alone)]),
        (Cause::ContainerRuntimeFailure, Confidence::Medium),
        "the code of a text is no second source to it"
    );
}

#[test]
fn the_line_that_confirms_it_is_the_second_proof_and_holds_no_secret() {
    let secret = "abcdef.0123456789abcdef";
    let quoted = "\"localdns.service failed\",\"second line\",\"third line\"";
    let line = summary(Cause::DnsFailure, "medium", quoted, WHOLE);
    let script = "exit status=1\nlocaldns.service failed\nlocaldns: failed 2\nlocaldns: failed 3\nlocaldns: failed 4";
    let boot = "[    1.0] booting\n".repeat(9);
    let console = format!("{boot}{} --token {secret}", LIKELY[1]);
    for extension in [line.as_str(), script] {
        let found = of(&[(Source::Extension, extension), (Source::SerialLog, &console)]);
        assert_eq!(found.cause.confidence, Confidence::High, "{}", found.summary);
        assert!(found.proof[0].text.contains("localdns.service failed"), "{:?}", found.proof);
        assert_eq!(found.proof[1].source, Source::SerialLog, "{:?}", found.proof);
        assert!(found.proof[1].text.contains("SERVFAIL for"), "{:?}", found.proof);
        assert_eq!(found.proof.len(), 3, "{:?}", found.proof);
        assert!(!format!("{found:?}").contains(secret), "{:?}", found.proof);
    }
}

const SOURCES: &[Source] = &[
    Source::Text,
    Source::Extension,
    Source::RunCommand,
    Source::ProvisionResult,
    Source::ScriptLog,
    Source::Journal,
    Source::SerialLog,
    Source::Arm,
    Source::Kubernetes,
];

/// Texts of any strength that point to the same cause.
fn agreeing() -> Vec<String> {
    let node = |confidence, end| summary(Cause::DnsFailure, confidence, "", end);
    let lines = [LIKELY[0], LIKELY[1], WAITING, "lookup a.contoso.example: i/o timeout"];
    let ended =
        "[   62.0] cloud-init[9]: error: curl: (6) Could not resolve host: a.contoso.example";
    let nodes = [node("low", WHOLE), node("medium", WHOLE), node("high", WHOLE), node("high", "")];
    lines.into_iter().chain([ended]).map(str::to_owned).chain(nodes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_further_piece_that_agrees_never_makes_it_less_sure(
        picked in prop::collection::vec((0..SOURCES.len(), 0..agreeing().len()), 1..5),
    ) {
        let texts = agreeing();
        let pieces: Vec<Said<'_>> =
            picked.iter().map(|(source, text)| (SOURCES[*source], texts[*text].as_str())).collect();
        let mut before = Confidence::Low;
        for count in 1..=pieces.len() {
            let (cause, confidence) = judged(&pieces[..count]);
            prop_assert_eq!(cause, Cause::DnsFailure);
            prop_assert!(confidence >= before, "{:?}", &pieces[..count]);
            before = confidence;
        }
    }
}
