//! An explanation as text in 80 columns: plain, or with colours that carry meaning.

use std::fmt::Write as _;

use crate::block::{Block, Explanation, Moment, Row};
use crate::emphasis::{Emphasis, Paint, coloured, plain};
use crate::excerpt;
use crate::layout::{COLUMNS, hang, wrap};

/// The most events of a timeline that are shown. Those in the middle are omitted first.
const MOST_MOMENTS: usize = 8;
/// The column at which the values of facts begin.
const FACTS: usize = 12;

impl Explanation {
    /// The explanation as plain text, for pipes and files.
    pub fn text(&self) -> String {
        self.blocks.iter().map(|block| written(block, plain)).collect()
    }

    /// The explanation with verdict, failing step and proof in colour, for terminals.
    pub fn coloured(&self) -> String {
        self.blocks.iter().map(|block| written(block, coloured)).collect()
    }
}

fn written(block: &Block, paint: Paint) -> String {
    match block {
        Block::Headline(verdict, text) => paint(Emphasis::Verdict(*verdict), &wrap(text, "")),
        Block::Paragraph(text) => wrap(text, ""),
        Block::Quote { label, rows } => {
            format!("\n{}{}", wrap(label, ""), quoted(rows, paint))
        }
        Block::List { title, entries } => {
            let entries: String = entries.iter().map(|entry| hang(entry, "  ", "    ")).collect();
            match title {
                Some(title) => format!("\n{title}:\n{entries}"),
                None => format!("\n{entries}"),
            }
        }
        Block::Section { title, paragraphs } => {
            let paragraphs: String = paragraphs.iter().map(|text| wrap(text, "  ")).collect();
            format!("\n{title}:\n{paragraphs}")
        }
        Block::Packed { title, entries } => format!("\n{title}:\n{}", packed(entries)),
        Block::Timeline { moments, failed } => timeline(moments, *failed, paint),
        Block::Facts(facts) => facts.iter().fold("\n".to_owned(), |text, (label, value)| {
            let label = format!("{label}:");
            text + &hang(value, &format!("{label:<FACTS$}"), &" ".repeat(FACTS))
        }),
        Block::Notes(notes) => {
            notes.iter().fold("\n".to_owned(), |text, note| text + &hang(note, "Note: ", "      "))
        }
    }
}

/// Lines with their numbers and a caret, in the style of a compiler; without numbers, after a bar.
fn quoted(rows: &[Row], paint: Paint) -> String {
    if rows.iter().all(|row| row.number.is_some()) {
        return excerpt::draw(rows, paint);
    }
    let row = |row: &Row| {
        if row.is_proof {
            paint(Emphasis::Proof, &hang(&row.text, "  | ", "  | "))
        } else {
            hang(&row.text, "    ", "    ")
        }
    };
    rows.iter().map(row).collect()
}

/// The first and the last events: those between them matter least to readers.
fn timeline(moments: &[Moment], failed: bool, paint: Paint) -> String {
    let Some(start) = moments.first().map(|moment| moment.at) else { return String::new() };
    let skipped = moments.len().saturating_sub(MOST_MOMENTS);
    let half = MOST_MOMENTS / 2;
    let mut text = "\nTimeline:\n".to_owned();
    for (index, moment) in moments.iter().enumerate() {
        if skipped > 0 && index == half {
            let _ = writeln!(text, "  ... {skipped} more ...");
        }
        if skipped > 0 && (half..half + skipped).contains(&index) {
            continue;
        }
        let since = moment.at.duration_since(start).as_secs();
        let at = moment.at.strftime("%Y-%m-%dT%H:%M:%SZ");
        let lead = format!("  {at}  +{since:<4} s  ");
        let line = hang(&moment.what, &lead, &" ".repeat(lead.len()));
        let is_last = index + 1 == moments.len();
        text.push_str(&if failed && is_last { paint(Emphasis::FailingStep, &line) } else { line });
    }
    text
}

/// Entries in as few lines as possible, without breaking an entry.
fn packed(entries: &[String]) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (index, entry) in entries.iter().enumerate() {
        let end = if index + 1 < entries.len() { ";" } else { "" };
        if !line.is_empty() && 2 + line.len() + 1 + entry.len() + end.len() > COLUMNS {
            let _ = writeln!(text, "  {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let _ = write!(line, "{entry}{end}");
    }
    let _ = writeln!(text, "  {line}");
    text
}

#[cfg(test)]
mod tests {
    use bringup_diagnosis::Verdict;

    use super::*;

    fn explanation() -> Explanation {
        let row = |text: &str, is_proof| Row {
            number: None,
            text: text.to_owned(),
            is_proof,
            span: None,
        };
        let moment =
            |at: &str, what: &str| Moment { at: at.parse().unwrap(), what: what.to_owned() };
        Explanation {
            blocks: vec![
                Block::Headline(Verdict::Failed, "FAILED: DiskFull, exit code 6".to_owned()),
                Block::Quote {
                    label: "Proof (serial log):".to_owned(),
                    rows: vec![row("+ tar", false), row("No space left on device", true)],
                },
                Block::Timeline {
                    moments: vec![
                        moment("2026-01-27T10:00:00Z", "VM created"),
                        moment("2026-01-27T10:01:05Z", "CSE ended"),
                    ],
                    failed: true,
                },
                Block::Facts(vec![("Owner", "image <owner>".to_owned())]),
            ],
        }
    }

    #[test]
    fn plain_text_and_colour_say_the_same() {
        let (plain, colour) = (explanation().text(), explanation().coloured());
        assert_eq!(bringup_diagnosis::lines::clean(&colour), plain);
        assert_eq!(
            plain,
            "FAILED: DiskFull, exit code 6\n\
             \nProof (serial log):\n    + tar\n  | No space left on device\n\
             \nTimeline:\n  2026-01-27T10:00:00Z  +0    s  VM created\n  \
             2026-01-27T10:01:05Z  +65   s  CSE ended\n\
             \nOwner:      image <owner>\n"
        );
    }

    #[test]
    fn only_verdict_failing_step_and_proof_are_coloured() {
        let text = explanation().coloured();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('\u{1b}')).collect();
        assert_eq!(
            lines,
            [
                "\u{1b}[1;31mFAILED: DiskFull, exit code 6\u{1b}[0m",
                "  \u{1b}[1m| No space left on device\u{1b}[0m",
                "  \u{1b}[33m2026-01-27T10:01:05Z  +65   s  CSE ended\u{1b}[0m",
            ]
        );
    }

    #[test]
    fn html_escapes_and_marks_the_proof() {
        let html = explanation().html();
        assert!(html.contains("<h2 class=\"verdict failed\">FAILED: DiskFull"), "{html}");
        assert!(html.contains("<mark>No space left on device</mark>"), "{html}");
        assert!(html.contains("<dt>Owner</dt><dd>image &lt;owner&gt;</dd>"), "{html}");
        assert!(html.contains("<li class=\"failing\"><time>2026-01-27T10:01:05Z</time>"), "{html}");
    }
}
