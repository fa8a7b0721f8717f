//! Finding signs in evidence: one pass over the text for all signs of all rules.

use std::cell::{LazyCell, OnceCell};
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::boot_log;
use crate::course::{self, Achieved, Milestone, Progress};
use crate::evidence::{Evidence, Piece, Source};
use crate::fault::Idiom;
use crate::genre;
use crate::lines::{Line, bounded, push_normal, split};
use crate::mention;
use crate::reader::Reader;
use crate::record::{self, Level};
use crate::role::Role;
use crate::rule::{Rule, Sign, Strength};
use crate::rules::RULES;
use crate::signatures::Signatures;
use crate::vocabulary;

/// How far apart the parts of a sign may stand in a line, in bytes.
const REACH: usize = 4096;

/// How often signs are looked for around a hit, in one line. A line may be made to hold thousands of
/// beginnings of signs, each of which costs [`REACH`] bytes to try.
const TRIED: usize = 256;

/// A sign that was met.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule it belongs to.
    pub rule: &'static Rule,
    /// What was met.
    pub sign: &'static Sign,
    /// Of several findings, the one with the lowest rank decides.
    pub rank: u16,
    /// How much it proves.
    pub strength: Strength,
    /// The piece of evidence, by its place among them.
    pub piece: usize,
    /// The line in it, by its place among the lines.
    pub line: usize,
    /// The line calls itself a warning.
    pub warning: bool,
    /// Which of its user's signatures it is, if it is one.
    pub signature: Option<usize>,
}

/// The lines of one piece, as they stand and as they are compared.
#[derive(Debug)]
pub struct Page<'a> {
    /// The lines.
    pub lines: Vec<Line<'a>>,
    /// All of them as they are compared, joined by line breaks.
    normal: String,
    /// Where each line begins in `normal`.
    starts: Vec<usize>,
    /// The text is a serial console.
    is_console: bool,
    /// Whether the text only speaks of failures, once that was asked.
    is_no_report: OnceCell<bool>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self::plain(text).unwrap_or_else(|| Self::any(text))
    }

    fn any(text: &'a str) -> Self {
        let lines = split(text);
        let mut joined = String::with_capacity(text.len());
        let mut starts = Vec::with_capacity(lines.len());
        for line in &lines {
            starts.push(joined.len());
            push_normal(&line.text, &mut joined);
            joined.push('\n');
        }
        Self { lines, normal: joined, starts, is_console: false, is_no_report: OnceCell::new() }
    }

    /// The same for what most long logs are: ASCII, and nothing escaped. All of it is compared as
    /// it stands, so it can be prepared in one go.
    fn plain(text: &'a str) -> Option<Self> {
        let says = |word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
        if text.len() < LONG || !text.is_ascii() || says("\\n") || says("ExitCode: |") {
            return None;
        }
        let normal: Vec<u8> = text
            .bytes()
            .map(|byte| if matches!(byte, b'"' | b'`') { b'\'' } else { byte.to_ascii_lowercase() })
            .collect();
        let mut page = Self {
            lines: Vec::new(),
            normal: String::from_utf8(normal).ok()?,
            starts: Vec::new(),
            is_console: false,
            is_no_report: OnceCell::new(),
        };
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain(std::iter::once(text.len()));
        let mut start = 0;
        for (index, end) in ends.enumerate() {
            for part in bounded(&text[start..end]) {
                page.lines.push(Line { number: index + 1, text: part.into() });
                page.starts.push(start);
                start += part.len();
            }
            start = end + 1;
        }
        Some(page)
    }

    /// A line as it is compared.
    pub fn normal_line(&self, index: usize) -> &str {
        let start = self.starts[index];
        let end = self.starts.get(index + 1).copied().unwrap_or(self.normal.len());
        self.normal[start..end].trim_end_matches('\n')
    }

    /// Whether the text only speaks of failures and reports none.
    pub(crate) fn is_no_report(&self) -> bool {
        *self.is_no_report.get_or_init(|| genre::is_no_report(self))
    }

    /// Whether the text is a long log.
    pub(crate) fn is_long(&self) -> bool {
        self.normal.len() >= LONG
    }

    /// Whether the text is a serial console.
    pub(crate) fn is_console(&self) -> bool {
        self.is_console
    }

    /// A line as it is compared, or as much of it as is worth reading.
    pub(crate) fn bounded_line(&self, index: usize) -> &str {
        let line = self.normal_line(index);
        &line[..line.floor_char_boundary(REACH)]
    }

    /// The part of a line around a place in it: all of it, unless it is very long.
    fn around(&self, line: usize, offset: usize) -> &str {
        let text = self.normal_line(line);
        let at = offset - self.starts[line];
        let from = text.floor_char_boundary(at.saturating_sub(REACH));
        &text[from..text.floor_char_boundary(at + REACH)]
    }

    /// Whether a text stands anywhere on the page.
    pub fn says(&self, text: &str) -> bool {
        memchr::memmem::find(self.normal.as_bytes(), text.as_bytes()).is_some()
    }

    /// The last line on which a text stands.
    pub fn last(&self, text: &str) -> Option<usize> {
        // Searching forwards is many times faster than backwards.
        memchr::memmem::find_iter(self.normal.as_bytes(), text.as_bytes())
            .last()
            .map(|at| self.line_at(at))
    }

    /// Every line on which a text stands, in order.
    pub fn each(&self, text: &str) -> impl Iterator<Item = usize> {
        memchr::memmem::find_iter(self.normal.as_bytes(), text.as_bytes())
            .map(|at| self.line_at(at))
    }

    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }
}

/// The pages of evidence, one for each piece.
pub fn pages(evidence: &Evidence) -> Vec<Page<'_>> {
    let page = |piece| {
        let mut page = Page::new(Piece::text(piece).unwrap_or_default());
        page.is_console = piece.source == Source::SerialLog;
        for line in &mut page.lines {
            line.number = piece.number_of(line.number);
        }
        page
    };
    evidence.pieces.iter().map(page).collect()
}

/// What a pattern of the automaton stands for.
enum Owner {
    /// A sign of one cause alone.
    Rule(&'static Rule, &'static Sign),
    /// A wording of a fault, whose cause depends on the endpoint.
    Idiom(&'static Idiom),
    /// A wording of something that was achieved.
    Progress(&'static Progress),
}

impl Owner {
    fn sign(&self) -> &'static Sign {
        match self {
            Self::Rule(_, sign) => sign,
            Self::Idiom(idiom) => &idiom.sign,
            Self::Progress(progress) => &progress.sign,
        }
    }
}

static OWNERS: LazyLock<Vec<Owner>> = LazyLock::new(|| {
    let signs = RULES.iter().flat_map(|rule| rule.signs.iter().map(|sign| Owner::Rule(rule, sign)));
    let idioms = vocabulary::all().map(Owner::Idiom);
    signs.chain(idioms).chain(course::PROGRESS.iter().map(Owner::Progress)).collect()
});

/// Quick to make, for the short texts of one node.
static SMALL: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(AhoCorasickKind::ContiguousNFA));
/// Quick to run, for long logs: making it takes as long as reading megabytes.
static LARGE: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(AhoCorasickKind::DFA));
/// From this many bytes on a text is a long log.
const LONG: usize = 512 * 1024;

fn automaton(kind: AhoCorasickKind) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .kind(Some(kind))
        .build(OWNERS.iter().map(|owner| owner.sign().all[0]))
        .expect("the signs are few and short")
}

/// What evidence shows, in its order.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Every sign that is met.
    pub(crate) findings: Vec<Finding>,
    /// What was achieved.
    pub(crate) milestones: Vec<Milestone>,
}

/// Reads all that evidence shows.
pub(crate) fn find(
    pages: &[Page<'_>],
    code: Option<i32>,
    signatures: &Signatures,
    api_server: Option<&str>,
) -> Found {
    let mut found = Found::default();
    for (piece, page) in pages.iter().enumerate() {
        if page.is_no_report()
            || code.is_none() && page.lines.len() > 3 && !genre::is_of_a_bootstrap(page)
        {
            continue;
        }
        let milestones = find_on(page, piece, code, api_server, &mut found.findings);
        found.milestones.extend(course::keep_last(milestones));
        if let Some(line) = mention::command_under_way(page) {
            let (achieved, role) = (Achieved::GoesOn, Role::Unnamed);
            found.milestones.push(Milestone { achieved, piece, line, role });
        }
        found.findings.extend(find_of_users(page, piece, signatures));
    }
    found
}

fn find_of_users(page: &Page<'_>, piece: usize, signatures: &Signatures) -> Vec<Finding> {
    let met = signatures.on(page).map(|(index, signature, line)| Finding {
        rule: signature.rule,
        sign: signature.sign,
        rank: signature.sign.rank,
        strength: signature.sign.strength,
        piece,
        line,
        warning: record::level(page.bounded_line(line)) == Level::Warning,
        signature: Some(index),
    });
    met.collect()
}

fn find_on(
    page: &Page<'_>,
    piece: usize,
    code: Option<i32>,
    api_server: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Vec<Milestone> {
    let mut milestones = Vec::new();
    let mut reader = Reader::new(page, piece, code, api_server);
    let mut last = None;
    let mut tried = (0, 0);
    // Whether a sign's surroundings are right is asked once a page, not once a hit.
    let mut fits: Vec<Option<bool>> = vec![None; OWNERS.len()];
    let second_attempt = LazyCell::new(|| boot_log::second_attempt(page));
    let automaton = if page.is_long() { &*LARGE } else { &*SMALL };
    for hit in automaton.find_overlapping_iter(&page.normal) {
        let pattern = hit.pattern().as_usize();
        let owner = &OWNERS[pattern];
        let sign = owner.sign();
        let line = page.line_at(hit.start());
        // A sign that stands twice in a line is one finding.
        if last == Some((pattern, line)) {
            continue;
        }
        last = Some((pattern, line));
        tried = if tried.0 == line { (line, tried.1 + 1) } else { (line, 1) };
        if tried.1 > TRIED {
            continue;
        }
        let fits = *fits[pattern].get_or_insert_with(|| fits_page(sign, page, code));
        let is_second = || second_attempt.is_some_and(|second| line >= second);
        if fits && fits_line(sign, page.around(line, hit.start())) && (!sign.again || is_second()) {
            match owner {
                Owner::Progress(progress) => {
                    milestones.extend(reader.achieved(progress, line));
                }
                Owner::Rule(of, sign) => findings.extend(reader.sign(of, sign, line)),
                Owner::Idiom(idiom) => findings.extend(reader.idiom(idiom, line)),
            }
        }
    }
    milestones
}

fn fits_page(sign: &Sign, page: &Page<'_>, code: Option<i32>) -> bool {
    (sign.codes.is_empty() || code.is_some_and(|code| sign.codes.contains(&code)))
        && (sign.near.is_empty() || sign.near.iter().any(|part| page.says(part)))
}

fn fits_line(sign: &Sign, line: &str) -> bool {
    sign.all[1..].iter().all(|part| line.contains(part))
        && !sign.none.iter().any(|part| line.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_log_is_prepared_like_any_other() {
        let long = "x".repeat(100_000);
        let text = format!(
            "{}{long}\nend",
            "First line with \"Quotes\"\n\nlast `line`\n".repeat(LONG / 20)
        );
        let (plain, any) = (Page::plain(&text).expect("it is plain"), Page::any(&text));
        assert_eq!(plain.lines, any.lines);
        for line in 0..100 {
            assert_eq!(plain.normal_line(line), any.normal_line(line));
        }
    }
}
