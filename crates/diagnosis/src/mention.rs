//! Lines that name a failure and report none: a test in a trace, a definition, the source of a script, a
//! comment.

use std::sync::LazyLock;

use crate::matcher::Page;
use crate::words::Words;

/// Words of lines that report no failure of a bootstrap.
const MARKS: &[((), &[&str])] = &[
    // What the line complains of does not matter, by its own account.
    (
        (),
        &[
            ", ignoring",
            "falling back to ",
            "(ignored)",
            "ignoring error",
            "this is expected",
            "this is normal",
            "non-fatal",
            "telemetry",
            // containerd looks for a network plugin before there can be one.
            "failed to load cni during init",
        ],
    ),
    // What a program that runs in the cluster needs: a service of the cluster, a database, a queue.
    (
        (),
        &[
            ".svc.cluster.local",
            ".svc:",
            ":5432",
            ":3306",
            ":6379",
            ":27017",
            ":9092",
            ":1433",
            ":5672",
            "port 5432",
            "port 3306",
            "port 6379",
            "crashloopbackoff",
            "connecting to upstream",
            "upstream timed out",
        ],
    ),
    // A line of a script that is not run.
    ((), &["|| exit $", "|| exit 1", "|| return $"]),
];

/// Whether a line, as it is compared, only names what it contains.
pub(crate) fn is_mention(line: &str) -> bool {
    static WORDS: LazyLock<Words<()>> = LazyLock::new(|| Words::new(MARKS));
    let line = line.trim_start();
    is_traced_test(line) || is_condition(line) || WORDS.first_in(line).is_some()
}

/// A test or a definition in the trace of a shell: `+ [[ $x == *denied* ]]`, `++ ERR_X=50`.
fn is_traced_test(line: &str) -> bool {
    let command = line.trim_start_matches('+');
    if command.len() == line.len() || !command.starts_with(' ') {
        return false;
    }
    let command = command.trim_start();
    let first = command.split_whitespace().next().unwrap_or_default();
    let is_test = matches!(first, "[[" | "[" | "'['" | "test" | "case" | "grep");
    let is_definition = first.starts_with("err_") && first.contains('=');
    // What is compared may be what a command printed, or the status with which it ended.
    let is_result = command.contains("failed to run command") || command.contains(" -ne 0");
    is_test && !is_result || is_definition
}

/// Whether a line is a command in the trace of a shell, and not something it prints or keeps.
pub(crate) fn is_traced_command(line: &str) -> bool {
    let command = line.trim_start().trim_start_matches('+');
    if command.len() == line.trim_start().len() || !command.starts_with(' ') {
        return false;
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    !first.contains('=')
        && !matches!(first, "echo" | "printf" | "logger")
        && !command.contains("failed to run command")
}

/// `if ! curl ...; then` in the source of a script.
fn is_condition(line: &str) -> bool {
    (line.starts_with("if ") || line.starts_with("elif "))
        && (line.ends_with("then") || line.ends_with('{'))
}

/// How often the same command is tried before its failure counts as lasting.
const TRIED_OFTEN: usize = 5;

/// The last line of a trace, if it is a command that runs: then nothing has failed for good.
pub(crate) fn command_under_way(page: &Page<'_>) -> Option<usize> {
    let last =
        (0..page.lines.len()).rev().find(|line| !page.normal_line(*line).trim().is_empty())?;
    let line = page.bounded_line(last).trim();
    let command = line.trim_start_matches('+').trim_start();
    let ends = ["exit", "return", "break", "set", "echo"];
    let first = command.split_whitespace().next().unwrap_or_default();
    if !is_traced_command(line) || ends.contains(&first) {
        return None;
    }
    // What is tried again and again without end does not go on.
    let same = (0..last).filter(|other| page.bounded_line(*other).trim() == line).count();
    (same < TRIED_OFTEN).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_a_definition_and_a_source_only_name_a_failure() {
        for line in [
            "+ [[ output == *unauthorized* ]]",
            "++ err_outbound_conn_fail=50",
            "retrycmd 5 curl -f https://mcr.example || exit $err_download_timeout",
            "if ! grep -q 'no space left on device' log; then",
        ] {
            assert!(is_mention(line), "{line}");
        }
        for line in ["+ echo 'error: oras not found'", "curl: (28) timed out", "+ exit 50"] {
            assert!(!is_mention(line), "{line}");
        }
    }
}
