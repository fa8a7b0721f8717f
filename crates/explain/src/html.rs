//! An explanation as an HTML fragment. Classes name the kind of each part; the page's style sheet decides its
//! appearance.

use std::fmt::Write as _;

use bringup_diagnosis::Verdict;

use crate::block::{Block, Explanation, Row};

impl Explanation {
    /// The explanation as an HTML fragment. All text is escaped.
    pub fn html(&self) -> String {
        self.blocks.iter().map(written).collect()
    }
}

fn written(block: &Block) -> String {
    match block {
        Block::Headline(verdict, text) => {
            format!("<h2 class=\"verdict {}\">{}</h2>\n", class(*verdict), escaped(text))
        }
        Block::Paragraph(text) if text.is_empty() => String::new(),
        Block::Paragraph(text) => format!("<p>{}</p>\n", escaped(text)),
        Block::Quote { label, rows } => {
            let label = escaped(label.trim_end_matches(':'));
            let rows: String = rows.iter().map(row).collect();
            format!("<figure><figcaption>{label}</figcaption><pre>{rows}</pre></figure>\n")
        }
        Block::List { title: Some(title), entries } | Block::Packed { title, entries } => {
            format!("<h3>{}</h3>\n{}", escaped(title), list(entries))
        }
        Block::List { title: None, entries } => list(entries),
        Block::Section { title, paragraphs } => {
            paragraphs.iter().fold(format!("<h3>{}</h3>\n", escaped(title)), |text, paragraph| {
                text + &format!("<p>{}</p>\n", escaped(paragraph))
            })
        }
        Block::Timeline { moments, failed } => {
            let mut text = "<h3>Timeline</h3>\n<ol class=\"timeline\">".to_owned();
            for (index, moment) in moments.iter().enumerate() {
                let is_failing = *failed && index + 1 == moments.len();
                let class = if is_failing { " class=\"failing\"" } else { "" };
                let at = moment.at.strftime("%Y-%m-%dT%H:%M:%SZ");
                let what = escaped(&moment.what);
                let _ = write!(text, "<li{class}><time>{at}</time> {what}</li>");
            }
            text + "</ol>\n"
        }
        Block::Facts(facts) => {
            let facts = facts.iter().fold(String::new(), |text, (label, value)| {
                text + &format!("<dt>{}</dt><dd>{}</dd>", escaped(label), escaped(value))
            });
            format!("<dl>{facts}</dl>\n")
        }
        Block::Notes(notes) => notes.iter().fold(String::new(), |text, note| {
            text + &format!("<p class=\"note\">{}</p>\n", escaped(note))
        }),
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Failed => "failed",
        Verdict::Succeeded => "succeeded",
        Verdict::Running => "running",
        Verdict::Unknown => "unknown",
    }
}

fn list(entries: &[String]) -> String {
    let entries = entries
        .iter()
        .fold(String::new(), |text, entry| text + &format!("<li>{}</li>", escaped(entry)));
    format!("<ul>{entries}</ul>\n")
}

fn row(row: &Row) -> String {
    let text = escaped(&row.text);
    if row.is_proof { format!("<mark>{text}</mark>\n") } else { text + "\n" }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
