//! The words of a verdict: its summary, its proof, what was overruled and what was looked at.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bringup_contract::Cause;

use crate::diagnosis::{Overruled, Proof, Verdict};
use crate::evidence::{Content, Source};
use crate::facts;
use crate::matcher::Finding;
use crate::redaction::{Redacted, redact};
use crate::rule::Rule;
use crate::subject;
use crate::verdict::Case;

/// How much of a proving line is quoted.
const QUOTED: usize = 512;
/// How many lines are quoted before and after a line of a serial log.
const NEIGHBOURS: usize = 2;
/// How many further findings are named.
const NAMED: usize = 3;
/// What to do when nothing tells the cause.
const COLLECT: &str = "Collect the extension's message with its instance view, the serial log and the node's own logs (AKS: /var/log/azure/cluster-provision.log and aks/provision.json; Cluster API: /var/log/cloud-init-output.log), and diagnose them together.";
/// How extensions of Linux and of Windows say that their command failed.
const ENDED: [&str; 2] = ["terminated with exit status", "non-zero exit code"];

impl Case<'_> {
    pub(crate) fn summary(
        &self,
        verdict: Verdict,
        cause: Cause,
        winner: Option<&Finding>,
        constant: Option<&str>,
        last_words: Option<&Redacted>,
    ) -> String {
        let code = match (self.code(), constant) {
            (Some(code), Some(constant)) => Some(format!("exit code {code}, {constant}")),
            (Some(0), None) => Some("although its scripts ended with 0".to_owned()),
            (Some(code), None) => Some(format!("exit code {code}")),
            (None, _) => match (self.waited(), self.arm_code()) {
                (Some(exit), _) => Some(format!("exit code {exit} of bringup-node wait")),
                (None, Some(code)) => Some(format!("Azure's code {code}")),
                (None, None) => None,
            },
        };
        let in_brackets = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
        match verdict {
            Verdict::Succeeded => "the bootstrap succeeded".to_owned(),
            Verdict::Running => "the bootstrap is under way".to_owned(),
            Verdict::Unknown => "the evidence does not tell how the bootstrap ended".to_owned(),
            Verdict::Failed if cause == Cause::Unknown => {
                let with = match (self.code(), &code) {
                    (Some(0), _) | (_, None) => in_brackets,
                    (_, Some(code)) => format!(" with {code}"),
                };
                match last_words {
                    Some(said) => format!("the bootstrap failed{with}; its script said: {said}"),
                    None => format!(
                        "the bootstrap failed{with}, and the evidence does not tell why{}",
                        self.hidden()
                    ),
                }
            }
            Verdict::Failed => {
                let title = rule_of(cause).map_or_else(|| cause.meaning(), |rule| rule.title);
                let detail = self.detail(cause, winner);
                let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                format!("{title}{detail}{in_brackets}")
            }
        }
    }

    /// 211 is the code that hides most.
    fn hidden(&self) -> &'static str {
        match self.code() {
            Some(211) => "; 211 reads \"network timeout\" and also hides a missing oras",
            _ => "",
        }
    }

    /// What exactly: the program and what is wrong with it, the host, the step that was slow.
    fn detail(&self, cause: Cause, winner: Option<&Finding>) -> Option<String> {
        let checked = self.reading.node.as_ref().and_then(|node| node.preflight.first());
        match (cause, checked) {
            (Cause::BinaryMissing, Some(checked)) => Some(checked.replace(':', " is ")),
            (Cause::TimeBudgetExhausted, _) => self
                .pages
                .iter()
                .find_map(|page| subject::slow_step(page))
                .map(|step| format!("in {step}")),
            _ => winner.and_then(|finding| self.subject(finding)),
        }
    }

    fn subject(&self, finding: &Finding) -> Option<String> {
        let line = &self.pages[finding.piece].lines[finding.line].text;
        finding.rule.subject.and_then(|name| name(line))
    }

    /// What to do; of a line that only its user knows, also where more is said of it.
    pub(crate) fn remedy(&self, cause: Cause, winner: Option<&Finding>) -> String {
        let told =
            winner.map(|finding| self.pages[finding.piece].lines[finding.line].text.as_ref());
        let remedy = |cause| facts::filled(&remedy(cause), told.as_slice());
        let known = winner.and_then(|finding| finding.signature);
        match known.and_then(|index| self.evidence.signatures.note(index)) {
            Some(note) => format!("{} {note}", remedy(cause)),
            None => remedy(cause),
        }
    }

    pub(crate) fn proof(&self, cause: Cause, winner: Option<&Finding>) -> Vec<Proof> {
        let mut lines: Vec<&Finding> =
            self.findings.iter().filter(|finding| finding.rule.cause == cause).collect();
        lines.sort_by_key(|finding| self.order(finding));
        lines.dedup_by_key(|finding| (finding.piece, finding.line));
        let from_node =
            self.reading.node.iter().flat_map(|node| &node.evidence).map(|text| Proof {
                source: Source::NodeReport,
                name: "bringup-node".to_owned(),
                line: 1,
                text: redact(text).text.truncated(QUOTED),
                before: Vec::new(),
                after: Vec::new(),
                span: (0, 0),
            });
        let quoted = winner.into_iter().chain(lines.into_iter().filter(|finding| {
            winner.is_none_or(|winner| (winner.piece, winner.line) != (finding.piece, finding.line))
        }));
        // The node's summary quotes what it found; that is no second witness.
        let quoted = quoted.filter(|finding| !self.is_summary(finding.piece, finding.line));
        // The same line again is no more proof.
        let mut texts = BTreeSet::new();
        let quoted = quoted
            .filter(move |it| texts.insert(self.pages[it.piece].lines[it.line].text.as_ref()));
        let mut proof: Vec<Proof> = Vec::new();
        for next in from_node.chain(quoted.map(|finding| self.quote(finding))) {
            let is_known = |known: &Proof| known.text.as_str() == next.text.as_str();
            if !proof.iter().any(is_known) {
                proof.push(next);
            }
            if proof.len() > NAMED {
                break;
            }
        }
        if cause == Cause::Unknown && proof.is_empty() && self.verdict() == Verdict::Failed {
            proof.extend(self.script_proof().or_else(|| self.last_words()));
        }
        let second = self.second(cause, winner).map(|finding| self.quote(finding));
        if let Some(second) =
            second.filter(|it| proof.first().is_none_or(|best| best.text != it.text))
        {
            // A source that confirms it convinces more than one more line of the same.
            proof.retain(|known| known.text != second.text);
            proof.insert(proof.len().min(1), second);
        }
        proof.truncate(NAMED);
        // Only of the best one: a page of lines is no proof.
        for further in proof.iter_mut().skip(1) {
            further.before.clear();
            further.after.clear();
        }
        proof
    }

    /// What stands around a line of a serial log, in the same boot.
    fn neighbours(&self, piece: usize, line: usize) -> (Vec<Redacted>, Vec<Redacted>) {
        let Some(cut) = &self.cuts[piece] else { return (Vec::new(), Vec::new()) };
        let page = &self.pages[piece];
        let boot = cut.boot_of(page, line);
        let quoted = |lines: std::ops::Range<usize>| {
            let texts = page.lines[lines].iter().map(|line| line.text.trim_end());
            texts.map(|text| redact(text).text.truncated(QUOTED)).collect()
        };
        let before = line.saturating_sub(NEIGHBOURS).max(boot.start)..line;
        let after = line + 1..(line + 1 + NEIGHBOURS).min(boot.end);
        (quoted(before), quoted(after))
    }

    fn quote(&self, finding: &Finding) -> Proof {
        let page = &self.pages[finding.piece];
        let line = &page.lines[finding.line];
        let piece = &self.evidence.pieces[finding.piece];
        let normal = page.normal_line(finding.line);
        let (at, length) = finding.sign.place(normal, &line.text);
        let (before, text) = saying(line.text.trim_end(), at);
        let (from, text) = around(text, at - before);
        let (before, after) = self.neighbours(finding.piece, finding.line);
        Proof {
            source: piece.source,
            name: piece.name.clone(),
            line: line.number,
            text: redact(&text).text.truncated(QUOTED),
            before,
            after,
            span: (from, from + length),
        }
    }

    /// Where no rule tells the cause, the script's own last sentence.
    fn script_proof(&self) -> Option<Proof> {
        let said = self.script_said()?;
        let piece = &self.evidence.pieces[said.piece];
        Some(Proof {
            source: piece.source,
            name: piece.name.clone(),
            line: self.pages[said.piece].lines[said.line].number,
            text: said.text,
            before: Vec::new(),
            after: Vec::new(),
            span: (0, 0),
        })
    }

    /// Where no rule tells the cause, what a serial log says of the failure in its own words.
    fn last_words(&self) -> Option<Proof> {
        let cuts = self.cuts.iter().enumerate();
        let mut serial = cuts.filter_map(|(piece, cut)| Some((piece, cut.as_ref()?)));
        let (piece, at) = serial
            .find_map(|(piece, cut)| Some((piece, cut.last_words(&self.pages[piece])?)))
            .or_else(|| self.stated_end())?;
        let line = &self.pages[piece].lines[at];
        let (before, after) = self.neighbours(piece, at);
        Some(Proof {
            source: self.evidence.pieces[piece].source,
            name: self.evidence.pieces[piece].name.clone(),
            line: line.number,
            text: redact(line.text.trim_end()).text.truncated(QUOTED),
            before,
            after,
            span: (0, 0),
        })
    }

    /// Where an extension says that its command failed, and no more: by itself, or in the words of ARM.
    fn stated_end(&self) -> Option<(usize, usize)> {
        [Source::Extension, Source::Arm].into_iter().find_map(|source| {
            let pieces = self.evidence.pieces.iter().zip(&self.pages).enumerate();
            let mut of_source = pieces.filter(|(_, (piece, _))| piece.source == source);
            of_source.find_map(|(index, (_, page))| {
                let line = ENDED.iter().find_map(|mark| page.last(mark))?;
                Some((index, line))
            })
        })
    }

    pub(crate) fn overruled(
        &self,
        verdict: Verdict,
        cause: Cause,
        winner: Option<&Finding>,
        constant: Option<&str>,
    ) -> Vec<Overruled> {
        let mut overruled = Vec::new();
        if verdict != Verdict::Failed {
            return overruled;
        }
        if let (Some(code), Some(_)) = (self.catalogued(), winner)
            && let Some(why) = &code.misleading
            // A name that only we give says what it says.
            && !code.meanings.iter().any(|one| one.is_proposal() && one.constant() == constant)
        {
            let reason = constant.map_or_else(|| code.code.to_string(), str::to_owned);
            overruled.push(Overruled { reason, why: why.clone() });
        }
        if self.code() == Some(0) {
            let why = "the extension says success, and its own text proves a failure";
            overruled.push(Overruled { reason: "ExitCode 0".to_owned(), why: why.to_owned() });
        }
        let mut others: Vec<&Finding> =
            self.findings.iter().filter(|finding| finding.rule.cause != cause).collect();
        others.sort_by_key(|finding| self.order(finding));
        others.dedup_by_key(|finding| finding.rule.cause);
        for finding in others.into_iter().take(NAMED) {
            let why = format!("also seen ({}), and outranked by {cause}", finding.rule.title);
            overruled.push(Overruled { reason: finding.rule.cause.reason().to_owned(), why });
        }
        overruled
    }

    pub(crate) fn looked_at(&self) -> Vec<String> {
        self.evidence
            .pieces
            .iter()
            .map(|piece| {
                let what = format!("{} ({})", piece.name, piece.source.words());
                match &piece.content {
                    Content::Seen(text) => format!("{what}: {} bytes", text.len()),
                    Content::Missing(why) => format!("{what}: missing, {why}"),
                    Content::NotAsked => format!("{what}: not asked for"),
                }
            })
            .collect()
    }
}

/// Of a line of the bootstrap's result, the value that has the character at `at`, and how many
/// characters stand before it; of any other line, all of it.
fn saying(line: &str, at: usize) -> (usize, &str) {
    let place = line.char_indices().nth(at).map_or(line.len(), |(place, _)| place);
    if !line.contains("\"ExitCode\"") {
        return (0, line);
    }
    let begins = ["\":\"", "\": \""]
        .iter()
        .filter_map(|opening| line[..place].rfind(opening).map(|found| found + opening.len()))
        .max()
        .unwrap_or_default();
    let rest = &line[begins..];
    let ends = ["\",\"", "\", \"", "\"}", "\" }"]
        .iter()
        .filter_map(|closing| rest[place - begins..].find(closing))
        .min()
        .map_or(rest.len(), |found| place - begins + found);
    (line[..begins].chars().count(), &rest[..ends])
}

/// The part of a line that is quoted, with the character at `at` in it, and where that character
/// stands then.
fn around(line: &str, at: usize) -> (usize, Cow<'_, str>) {
    let place = line.char_indices().nth(at).map_or(line.len(), |(place, _)| place);
    let skipped = line.floor_char_boundary(place.saturating_sub(QUOTED / 4));
    if line.len() <= QUOTED || place < QUOTED / 2 {
        return (at, Cow::Borrowed(line));
    }
    let rest = &line[skipped..];
    let rest = &rest[..rest.floor_char_boundary(2 * QUOTED)];
    (at - line[..skipped].chars().count() + 1, Cow::Owned(format!("…{rest}")))
}

/// What to do about a cause.
pub fn remedy(cause: Cause) -> String {
    rule_of(cause).map_or(COLLECT, |rule| rule.remedy).to_owned()
}

fn rule_of(cause: Cause) -> Option<&'static Rule> {
    crate::rules::RULES.iter().copied().find(|rule| rule.cause == cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_result_only_the_value_is_quoted_that_says_it() {
        let line = r#"{"ExitCode":"85","Error":"exit status 85","Output":"tar: No space left"}"#;
        let at = line.find("No space").unwrap_or_default();
        assert_eq!(saying(line, at), (52, "tar: No space left"));
        let line = r#"{ "ExitCode": "9", "Output": "é: not found", "Error": "" }"#;
        let at = line.chars().position(|letter| letter == 'é').unwrap_or_default();
        assert_eq!(saying(line, at).1, "é: not found");
        assert_eq!(saying("oras: not found", 6), (0, "oras: not found"));
    }

    #[test]
    fn of_a_long_line_the_part_is_quoted_that_says_it() {
        let line = format!("{}No space left{}", "é".repeat(1000), "x".repeat(5000));
        let (at, quoted) = around(&line, 1000);
        assert!(quoted.len() < 3 * QUOTED, "{}", quoted.len());
        assert!(quoted.chars().skip(at).collect::<String>().starts_with("No space left"));
        assert_eq!(around("short", 2), (2, Cow::Borrowed("short")));
    }
}
