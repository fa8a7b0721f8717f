//! Parses the output of a Custom Script extension, or of the scripts that it runs.
//!
//! The text occurs with every kind of escaping: raw, inside JSON, inside JSON inside JSON, cut at both ends.
//! A fact with a known key is found at any depth of escaping.

mod node_summary;

use std::sync::LazyLock;

use regex::Regex;

pub use node_summary::NodeSummary;

use self::node_summary::node_summary;
use crate::Os;
use crate::boot_times::{self, BootTimes};
use crate::words;

words! {
    /// Where the exit code was read.
    #[derive(Default)]
    pub enum CodeSource {
        /// The summary that bringup-node writes.
        Node = "node",
        /// The result JSON, or the bars of Windows.
        Json = "json",
        /// The trace or log of a result whose beginning was cut off.
        Trace = "trace",
        /// The exit status of the command that the extension ran.
        #[default]
        Outer = "outer",
    }
}

/// The facts that were read from a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The exit code of the bootstrap, and where it was found.
    pub code: Option<(i32, CodeSource)>,
    /// The exit status that the handler saw.
    pub outer: Option<i32>,
    /// How much of the result remains in the text.
    pub result: ResultShape,
    /// The state of the script according to the handler.
    pub handler: HandlerState,
    /// The operating system, if the text shows it.
    pub os: Option<Os>,
    /// The name of an error that the text gives next to the code.
    pub named: Option<String>,
    /// How long the script ran, in seconds.
    pub duration_seconds: Option<u64>,
    /// When the stages of the boot began.
    pub times: BootTimes,
    /// The summary of bringup-node.
    pub node: Option<NodeSummary>,
}

/// How much of the result that the scripts print remains in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultShape {
    /// The text contains no result.
    #[default]
    Absent,
    /// The beginning of the result, including the code, was cut off.
    HeadCut,
    /// The text contains the code.
    Stated,
}

/// The state of the script according to the handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandlerState {
    /// The handler reports no state, or a failure.
    #[default]
    NotSaid,
    /// The script is running.
    Running,
    /// The script succeeded.
    Succeeded,
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("the pattern is valid"));)*
    };
}

patterns! {
    EXIT_CODE = r#"(?i)(\\*)(?:"|u0022|'|&quot;)exit_?code\\*(?:"|u0022|'|&quot;)[ \t\r\n]*(?::|=>)[ \t\r\n]*\\*(?:"|u0022|'|&quot;)?(-?[0-9]{1,10})"#;
    OUTER_LINUX = r"exit[ \t\r\n]+status=[ \t\r\n]*(-?[0-9]{1,10})";
    OUTER_WINDOWS = r"non-zero[ \t\r\n]+exit[ \t\r\n]+code[ \t\r\n]+of:[ \t\r\n]*\\*'(-?[0-9]{1,10})";
    PIPES = r"(?s)ExitCode:[ \t\r\n]*\|[ \t\r\n]*(-?[0-9]{1,10})[ \t\r\n]*\|,[ \t\r\n]*Output:[ \t\r\n]*\|([^|]{0,200}?)(?:\||$)";
    TAIL = r#"\\*"[ \t\r\n]*,[ \t\r\n]*\\*"(?:Error|ExecDuration)\\*"[ \t\r\n]*:"#;
    TRACE_CODE = r"(?m)(?:^|\\n)\++ (?:exit|return) ([0-9]{1,3})(?-u:\b)";
    PLAIN_CODE = r"(?-u:\b)ExitCode:[ \t\r\n]*([0-9]{1,3})(?-u:\b)";
    TOLD_CODE = r"(?:VMExtensionError_|CSE)[^\n]{0,300}?(?-u:\b)(?:exit status|exit code|exits|exited with code|exits with code) ([0-9]{1,3})(?-u:\b)";
    TOLD_WINDOWS = r"(?-u:\b)(?:CSE Error[^\n]{0,200}?(?-u:\b)Exit Code: |Set ExitCode to )([0-9]{1,3})(?-u:\b)";
    TOLD_BEFORE = r"(?-u:\b)exit status ([0-9]{1,3})(?-u:\b)[^\n]{0,100}CSE";
    SHELL_TRACE = r"(?m)^\+{1,4} ";
    LOGGED_CODE = r"exitCode=([0-9]{1,3})(?-u:\b)";
    SENTENCE_CODE = r"API server connection check code: ([0-9]{1,3})(?-u:\b)";
    DURATION = r#"(?i)\\*"ExecDuration\\*"[ \t\r\n]*:[ \t\r\n]*\\*"?([0-9]{1,7})"#;
    TIME = r#"\\*"([A-Za-z]+)StartTime\\*"[ \t\r\n]*:[ \t\r\n]*\\*"([^"\\]{1,40})"#;
    CONSTANT = r"(?-u:\b)(ERR_[A-Z0-9_]{3,}|WINDOWS_CSE_ERROR_[A-Z0-9_]{2,})(?-u:\b)";
}

/// Reads a text.
pub fn read(text: &str) -> Reading {
    // Most parts of a long log contain none of these texts, and then no regular expression has to run.
    let says = |word: &str| says(text, word);
    let node = node_summary(text);
    let exits = says("xit");
    let pipes = if exits && says("ExitCode:") { PIPES.captures(text) } else { None };
    let json = if exits { json_code(text) } else { None };
    let outer_linux = if exits && says("status=") { last_number(&OUTER_LINUX, text) } else { None };
    let outer_windows =
        if exits && says("non-zero") { last_number(&OUTER_WINDOWS, text) } else { None };
    let outer = outer_linux.or(outer_windows);
    let has_duration = says("xecDuration");
    let has_tail = (has_duration || says("\"Error")) && TAIL.is_match(text);
    let head_cut = json.is_none() && pipes.is_none() && has_tail;
    let waited = node.as_ref().is_some_and(|node| node.waited);
    let inner = node
        .as_ref()
        .and_then(|node| if waited { node.code } else { node.exit })
        .map(|code| (code, CodeSource::Node))
        .or_else(|| {
            let code = pipes.as_ref().and_then(|found| found[1].parse().ok());
            code.map(|code| (code, CodeSource::Json))
        })
        .or_else(|| json.map(|code| (code, CodeSource::Json)));
    // `wait` has exit codes of its own, and the outer status only repeats them.
    let code =
        inner.or_else(|| if waited { None } else { outer_or_inferred(text, outer, head_cut) });
    let from_windows =
        ["Set ExitCode to ", "CustomScriptExtension'", "CustomScriptExtension\"", "WINDOWS_CSE_"];
    let os = if pipes.is_some()
        || outer_windows.is_some()
        || ["ustomScriptE", "WINDOWS", "Set ExitCode"].iter().any(|word| says(word))
            && from_windows.iter().any(|word| says(word))
    {
        Some(Os::Windows)
    } else if outer_linux.is_some() || json.is_some() || has_tail {
        Some(Os::Linux)
    } else {
        None
    };
    let named = pipes
        .as_ref()
        .map(|found| found[2].split_whitespace().collect::<String>())
        .filter(|name| !name.is_empty())
        .or_else(|| node.as_ref().and_then(|node| node.name.clone()))
        .or_else(|| {
            if says("ERR") {
                CONSTANT.captures(text).map(|found| found[1].to_owned())
            } else {
                None
            }
        });
    let duration = if has_duration { DURATION.captures(text) } else { None };
    Reading {
        code,
        outer,
        result: match (json.is_some() || pipes.is_some(), has_tail) {
            (true, _) => ResultShape::Stated,
            (false, true) => ResultShape::HeadCut,
            (false, false) => ResultShape::Absent,
        },
        handler: handler_state(text),
        os,
        named,
        duration_seconds: duration.and_then(|found| found[1].parse().ok()),
        times: if says("StartTime") { times(text) } else { BootTimes::default() },
        node,
    }
}

fn handler_state(text: &str) -> HandlerState {
    if !says(text, "Enable ") && !says(text, "ProvisioningState/") {
        return HandlerState::NotSaid;
    }
    // `ProvisioningState/succeeded` is no evidence: the VM, its disks and other extensions have this state
    // too.
    if says(text, "Enable in progress") || says(text, "ProvisioningState/transitioning") {
        HandlerState::Running
    } else if says(text, "Enable succeeded:") {
        HandlerState::Succeeded
    } else {
        HandlerState::NotSaid
    }
}

/// The exit code in the result JSON. The log inside the result may quote another result, which is escaped
/// deeper.
fn json_code(text: &str) -> Option<i32> {
    EXIT_CODE
        .captures_iter(text)
        .filter_map(|found| Some((found[1].len(), found[2].parse().ok()?)))
        .min_by_key(|(depth, _): &(usize, i32)| *depth)
        .map(|(_, code)| code)
}

/// The code when there is no inner code: the outer code, unless it is the 1 that stands for every failure and
/// the inner code is merely cut off.
fn outer_or_inferred(text: &str, outer: Option<i32>, head_cut: bool) -> Option<(i32, CodeSource)> {
    match outer {
        Some(code) if !head_cut || code != 1 => Some((code, CodeSource::Outer)),
        _ if head_cut || traced(text) => inferred(text).map(|code| (code, CodeSource::Trace)),
        _ => {
            let told = says(text, "xit")
                && ["CSE", "VMExtensionError_", "Set ExitCode to "]
                    .iter()
                    .any(|mark| says(text, mark));
            let told = if told {
                last_number(&TOLD_CODE, text)
                    .or_else(|| last_number(&TOLD_BEFORE, text))
                    .or_else(|| last_number(&TOLD_WINDOWS, text))
            } else {
                None
            };
            let plain =
                || if says(text, "ExitCode:") { last_number(&PLAIN_CODE, text) } else { None };
            told.or_else(plain).map(|code| (code, CodeSource::Outer))
        }
    }
}

/// Whether a text is the trace of a shell that has ended.
fn traced(text: &str) -> bool {
    says(text, "+ ")
        && (says(text, "+ exit ") || says(text, "+ return "))
        && SHELL_TRACE.is_match(text)
}

fn says(text: &str, word: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some()
}

fn inferred(text: &str) -> Option<i32> {
    let traced = TRACE_CODE
        .captures_iter(text)
        .filter_map(|found| found[1].parse().ok())
        .filter(|code: &i32| *code >= 2)
        .last()
        .or_else(|| text.trim_end().ends_with("+ exit 1").then_some(1));
    traced.or_else(|| last_number(&LOGGED_CODE, text)).or_else(|| last_number(&SENTENCE_CODE, text))
}

fn last_number(pattern: &Regex, text: &str) -> Option<i32> {
    pattern.captures_iter(text).filter_map(|found| found[1].parse().ok()).last()
}

fn times(text: &str) -> BootTimes {
    let mut times = BootTimes::default();
    for found in TIME.captures_iter(text) {
        let Some(at) = boot_times::parse(&found[2]) else { continue };
        let slot = match &found[1] {
            "Kernel" => &mut times.kernel,
            "CloudInitLocal" => &mut times.cloud_init_local,
            "CloudInit" => &mut times.cloud_init,
            "CloudFinal" => &mut times.cloud_final,
            "Networkd" => &mut times.networkd,
            "CSE" => &mut times.cse,
            "GuestAgent" => &mut times.guest_agent,
            "Kubelet" => &mut times.kubelet,
            _ => continue,
        };
        *slot = Some(at);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    fn code(text: &str) -> Option<(i32, CodeSource)> {
        read(text).code
    }

    #[test]
    fn the_code_in_the_result_beats_the_outer_status() {
        let text = "failed to execute command: command terminated with exit status=1\n[stdout]\n{ \"ExitCode\": \"50\", \"Output\": \"see [stderr] below\", \"Error\": \"\" }\n\n[stderr]\n";
        assert_eq!(code(text), Some((50, CodeSource::Json)));
        assert_eq!(read(text).outer, Some(1));
        assert_eq!(read(text).os, Some(Os::Linux));
    }

    #[test]
    fn the_code_is_read_at_any_depth_of_escaping() {
        let raw = "exit status=1\n[stdout]\n{ \"ExitCode\": \"240\" }";
        let once = serde_json::to_string(raw).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        let python = raw.replace('"', "'");
        let html = raw.replace('"', "&quot;");
        for text in [raw, &once, &twice, &python, &html] {
            assert_eq!(code(text), Some((240, CodeSource::Json)), "{text}");
        }
    }

    #[test]
    fn a_result_whose_head_is_cut_is_inferred_from_the_trace_or_not_at_all() {
        let cut = |trace: &str| {
            format!(
                "exit status=1\n[stdout]\n01\\n{trace}\", \"Error\": \"\", \"ExecDuration\": \"9\" }}\n\n[stderr]\n"
            )
        };
        assert_eq!(code(&cut("+ return 211\\n+ exit 211")), Some((211, CodeSource::Trace)));
        assert_eq!(code(&cut("nothing to see")), None);
        assert_eq!(read(&cut("")).result, ResultShape::HeadCut);
    }

    #[test]
    fn the_outer_status_counts_when_nothing_else_is_there() {
        assert_eq!(
            code(
                "Enable failed: failed to execute command: command terminated with exit status=41\n[stdout]\n"
            ),
            Some((41, CodeSource::Outer))
        );
        assert_eq!(code("terminated with exit status=-1"), Some((-1, CodeSource::Outer)));
        assert_eq!(code("Executed \"curl\" 20 times; giving up (last exit status: 28)."), None);
    }

    #[test]
    fn the_log_alone_and_the_words_of_aks_tell_the_code_as_well() {
        assert_eq!(
            code("+ timeout 120 apt-get update\n+ exit 30\n"),
            Some((30, CodeSource::Trace))
        );
        assert_eq!(
            code(
                "CSE failed with 'VMExtensionError_OutboundConnFail', it ended with exit status 50."
            ),
            Some((50, CodeSource::Outer))
        );
        assert_eq!(
            code("CSE exited with code 211 (ERR_ORAS_PULL_NETWORK_TIMEOUT): the probe"),
            Some((211, CodeSource::Outer))
        );
        assert_eq!(
            code("your opinion on the exit status 50 with AKS vmssCSE below"),
            Some((50, CodeSource::Outer))
        );
        assert_eq!(code("(seen on the node as ExitCode: 41)"), Some((41, CodeSource::Outer)));
        assert_eq!(code("could not pull: exit status 1"), None);
    }

    #[test]
    fn windows_says_it_between_bars_wrapped_or_cut() {
        let text = "non-zero exit code of: '1'. The command had an error output of: 'ExitCode: |35|, Output: |WINDOWS_CSE_ERROR_DOWNLOAD_\r\nCNI_PACKAGE|, Error: |Failed";
        let reading = read(text);
        assert_eq!(reading.code, Some((35, CodeSource::Json)));
        assert_eq!(reading.outer, Some(1));
        assert_eq!(reading.os, Some(Os::Windows));
        assert_eq!(reading.named.as_deref(), Some("WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE"));
    }

    #[test]
    fn the_nodes_own_summary_wins_also_when_it_is_cut() {
        let whole = "exit status=1\nBRINGUP-NODE/1 {\"v\":1,\"exit\":232,\"name\":\"ERR_ORAS_BINARY_NOT_FOUND\",\"cause\":\"BinaryMissing\",\"conf\":\"high\",\"ev\":[\"oras: absent\"],\"pf\":[\"oras:absent\"],\"end\":1}";
        let reading = read(whole);
        assert_eq!(reading.code, Some((232, CodeSource::Node)));
        let node = reading.node.unwrap();
        assert_eq!((node.cause, node.whole), (Some(Cause::BinaryMissing), true));
        assert_eq!(node.preflight, ["oras:absent"]);
        let cut = &whole[..whole.len() - 20];
        let node = read(cut).node.unwrap();
        assert_eq!((node.exit, node.whole), (Some(232), false));
    }

    #[test]
    fn the_numbers_of_a_wait_are_no_codes_of_the_scripts() {
        let text = |more: &str| {
            format!(
                "command terminated with exit status=31\n[stdout]\nBRINGUP-NODE/1 {{\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"CONTROL_PLANE_NOT_READY\",{more}\"cause\":\"ControlPlaneNotReady\",\"conf\":\"high\",\"end\":1}}\n"
            )
        };
        let reading = read(&text(""));
        assert_eq!((reading.code, reading.outer), (None, Some(31)));
        let node = reading.node.unwrap();
        assert_eq!((node.waited, node.exit), (true, Some(31)));
        assert_eq!(node.cause, Some(Cause::ControlPlaneNotReady));
        assert_eq!(read(&text("\"code\":50,")).code, Some((50, CodeSource::Node)));
        let cut = text("");
        assert_eq!(read(&cut[..cut.len() - 20]).code, None);
        let joined = text("").replace("\"wait\"", "\"join\"");
        assert_eq!(read(&joined).code, None);
    }

    #[test]
    fn times_and_duration_are_read() {
        let reading = read(
            "{ \"ExitCode\": \"0\", \"ExecDuration\": \"18\", \"KernelStartTime\": \"Tue 2024-11-12 17:23:33 UTC\", \"CSEStartTime\": \"Tue Nov 12 17:24:06 UTC 2024\", \"KubeletStartTime\": \"n/a\" }",
        );
        assert_eq!(reading.duration_seconds, Some(18));
        assert_eq!(reading.times.timeline().len(), 2);
    }
}
