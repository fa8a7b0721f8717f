//! What the bootstrap script itself said last. Where no rule knows a line, its author's own sentence is the
//! best explanation there is.

use std::ops::Range;

use crate::evidence::Source;
use crate::lines::normal;
use crate::matcher::Page;
use crate::mention;
use crate::redaction::{Redacted, redact};
use crate::verdict::Case;

/// The most of a sentence that is kept, in bytes.
const LONGEST: usize = 300;
/// How many lines from the end are searched for one that complains.
const REACH: usize = 12;
/// How many lines from the end are looked at.
const SEARCHED: usize = 1000;
/// Words of lines that complain.
const COMPLAINTS: &[&str] = &[
    "fail",
    "error",
    "unable",
    "cannot",
    "can't",
    "could not",
    "not ",
    "timed out",
    "timeout",
    "missing",
    "denied",
    "refused",
    "invalid",
    "fatal",
    "abort",
    "no such",
    "exceeded",
    "unexpected",
    "unauthorized",
    "unknown",
];

/// Where a line stands, and the part of it that is the script's own.
#[derive(Debug)]
pub(crate) struct LastWords {
    pub(crate) piece: usize,
    pub(crate) line: usize,
    pub(crate) text: Redacted,
}

impl Case<'_> {
    /// The last sentence of the script, from the source that is closest to it.
    pub(crate) fn script_said(&self) -> Option<LastWords> {
        let sources = [
            Source::Extension,
            Source::ProvisionResult,
            Source::ScriptLog,
            Source::RunCommand,
            Source::Arm,
            Source::Text,
        ];
        sources.into_iter().find_map(|source| {
            let pieces = self.evidence.pieces.iter().zip(&self.pages).enumerate();
            let mut of_source = pieces.filter(|(_, (piece, _))| piece.source == source);
            of_source.find_map(|(piece, (_, page))| {
                let (line, text) = of_page(page, source)?;
                Some(LastWords { piece, line, text: redact(text).text.truncated(LONGEST) })
            })
        })
    }
}

/// The last sentence of one text: its line, and the sentence.
fn of_page<'p>(page: &'p Page<'_>, source: Source) -> Option<(usize, &'p str)> {
    let region = region(page).or_else(|| {
        // A log of the script is its words from beginning to end.
        matches!(source, Source::ScriptLog | Source::RunCommand).then_some(0..page.lines.len())
    })?;
    let own = || {
        let lines = region.clone().rev().take(SEARCHED);
        // Most lines of a trace are commands, and need no closer look.
        let lines = lines.filter(|line| !page.lines[*line].text.starts_with('+'));
        lines.filter_map(|line| {
            let text = spoken(&page.lines[line].text);
            is_sentence(text).then_some((line, text))
        })
    };
    let complains = |text: &str| {
        let text = normal(text);
        COMPLAINTS.iter().any(|word| text.contains(word))
    };
    own().take(REACH).find(|(_, text)| complains(text)).or_else(|| own().next())
}

/// The lines that the script wrote: its result's `Output` and `Error`, or what stands below `[stdout]`.
fn region(page: &Page<'_>) -> Option<Range<usize>> {
    let starts = ["'output':", "'output' :", "output: |", "[stdout]"];
    let start = starts.iter().filter_map(|mark| page.last(mark)).max()?;
    let is_end = |line: &usize| {
        let text = page.normal_line(*line);
        text.contains("'execduration'") || text.contains("[stderr]") && *line > start
    };
    let end = (start..page.lines.len()).find(is_end).map_or(page.lines.len(), |end| end + 1);
    Some(start..end)
}

/// A line without what frames it: the keys of the result and the quotes around its values.
fn spoken(line: &str) -> &str {
    let after = |text: &'_ str, mark: &str| text.rfind(mark).map(|at| at + mark.len());
    let begins = ["\"Output\": \"", "\"Output\":\"", "Error: |", "Output: |", "[stdout]"];
    let from = begins.iter().filter_map(|mark| after(line, mark)).max().unwrap_or_default();
    let rest = &line[from..];
    let ends = [
        "\", \"Error\"",
        "\",\"Error\"",
        "\", \"ExecDuration\"",
        "\",\"ExecDuration\"",
        "|\r",
        "[stderr]",
    ];
    let to = ends.iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
    rest[..to].trim_matches(|letter: char| letter.is_whitespace() || letter == '"' || letter == '|')
}

/// Whether a line is something that is said to a reader, and no trace, framing or statistics.
fn is_sentence(text: &str) -> bool {
    let line = normal(text);
    let words =
        text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let is_frame = [
        "'error':",
        "'exitcode'",
        "starttime'",
        "systemdsummary",
        "[stdout]",
        "[stderr]",
        "exit status",
    ]
    .iter()
    .any(|frame| line.contains(frame));
    let is_routine = ["executed ", "sleep ", "at line:", "% total", "dload", "+ ", "++"]
        .iter()
        .any(|start| line.starts_with(start));
    words >= 2 && !is_frame && !is_routine && !mention::is_traced_command(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        let page = Page::new(text);
        of_page(&page, Source::Extension).map(|(_, text)| text.to_owned())
    }

    #[test]
    fn the_last_complaint_of_the_output_is_what_the_script_said() {
        let text = r#"Enable failed: failed to execute command: command terminated with exit status=211
[stdout]
{ "ExitCode": "211", "Output": "+ oras_login\n+ echo 'failed to retrieve refresh token for oras login'\nfailed to retrieve refresh token for oras login\n+ return 211\n+ exit 211\n", "Error": "", "ExecDuration": "61" }

[stderr]
"#;
        assert_eq!(said(text).as_deref(), Some("failed to retrieve refresh token for oras login"));
    }

    #[test]
    fn what_stands_in_the_result_without_a_line_of_its_own_is_found() {
        let text = r#"[stdout] {"ExitCode":"9","Output":"the widget cannot be frobnicated","Error":"","ExecDuration":"3"}"#;
        assert_eq!(said(text).as_deref(), Some("the widget cannot be frobnicated"));
    }

    #[test]
    fn windows_says_it_between_bars() {
        let text =
            "ExitCode: |9|, Output: |X|, Error: |the widget cannot be frobnicated|\r\nAt line:1";
        assert_eq!(said(text).as_deref(), Some("the widget cannot be frobnicated"));
    }

    #[test]
    fn a_trace_alone_says_nothing() {
        let text = r#"[stdout] {"ExitCode":"9","Output":"+ foo\n+ exit 9\n","Error":"","ExecDuration":"3"}"#;
        assert_eq!(said(text), None);
    }
}
