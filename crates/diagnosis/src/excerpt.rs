//! An excerpt of long evidence: what a later diagnosis needs of it, in a bounded number of bytes.
//!
//! A console has megabytes, of which a few lines tell something. A controller that waits for hundreds of nodes
//! keeps those lines and not the consoles.

use std::collections::BTreeSet;

use crate::boot_log::Cut;
use crate::diagnosis::Diagnosis;
use crate::evidence::{Content, Evidence, Piece, Source};
use crate::matcher::{self, Page};
use crate::redaction::Redacted;

/// How many lines around one that tells something are kept with it.
const AROUND: usize = 3;
/// What a result of the bootstrap looks like, wherever it stands.
const RESULTS: &[&str] = &["exitcode", "exit status", "bringup-node/1", "'bringup'", "starttime'"];

impl Evidence {
    /// How many bytes of text it holds.
    pub fn size(&self) -> usize {
        self.pieces.iter().filter_map(Piece::text).map(str::len).sum()
    }

    /// Cuts every piece that is longer than `most` bytes down to an excerpt of at most so many: the
    /// lines that prove `diagnosis`, the end, and the lines that a rule knows, as far as they fit.
    /// Lines keep their numbers.
    pub fn cut_to_excerpts(&mut self, diagnosis: &Diagnosis, most: usize) {
        let signatures = self.signatures.clone();
        for piece in &mut self.pieces {
            let Content::Seen(text) = &piece.content else { continue };
            if text.len() <= most {
                continue;
            }
            let proven: Vec<usize> = diagnosis
                .proof
                .iter()
                .filter(|proof| proof.source == piece.source && proof.name == piece.name)
                .map(|proof| proof.line)
                .collect();
            let page = Page::new(text);
            let order = in_order(&page, piece, &proven, diagnosis.exit_code, &signatures);
            let (text, numbers) = keep(piece, text, order, most);
            piece.content = Content::Seen(text);
            piece.numbers = numbers;
        }
    }
}

/// The lines of a text, by their numbers in it, most worth keeping first. Some come more than once.
fn in_order(
    page: &Page<'_>,
    piece: &Piece,
    proven: &[usize],
    code: Option<i32>,
    signatures: &crate::Signatures,
) -> Vec<usize> {
    let around = |line: usize| line.saturating_sub(AROUND)..line + AROUND + 1;
    let last = page.lines.last().map_or(0, |line| line.number);
    let is_proof = |number: &usize| proven.contains(&piece.number_of(*number));
    let numbers = || page.lines.iter().map(|line| line.number);
    let proofs = numbers().filter(is_proof).flat_map(around);
    let end = (last.saturating_sub(AROUND)..=last).rev();
    let cut = (piece.source == Source::SerialLog).then(|| Cut::of(page));
    let marks = cut.iter().flat_map(Cut::marks);
    let results = RESULTS.iter().flat_map(|mark| page.each(mark));
    let found = matcher::find(std::slice::from_ref(page), code, signatures, None).findings;
    let found = found.iter().rev().map(|finding| finding.line);
    let told = marks.chain(results).chain(found).map(|line| page.lines[line].number);
    let told = told.flat_map(|line| line.saturating_sub(1)..line + 2);
    let tail = (1..=last).rev();
    proofs.chain(end).chain(told).chain(tail).collect()
}

/// The lines of a text that fit, in the order of the text, and their numbers in the whole.
fn keep(piece: &Piece, text: &Redacted, order: Vec<usize>, most: usize) -> (Redacted, Vec<u32>) {
    let lines: Vec<&str> = text.as_str().split('\n').collect();
    // No line takes more than its share, so that many fit.
    let longest = most / 8;
    let size = |line: &str| line.len().min(longest) + 1;
    let (mut kept, mut room) = (BTreeSet::new(), most);
    for number in order {
        let Some(line) = number.checked_sub(1).and_then(|index| lines.get(index)) else { continue };
        if room < size(line) {
            break;
        }
        if kept.insert(number) {
            room -= size(line);
        }
    }
    let starts = lines.iter().scan(0, |start, line| {
        let at = *start;
        *start += line.len() + 1;
        Some(at)
    });
    let starts: Vec<usize> = starts.collect();
    let part = |number: &usize| {
        let (start, line) = (starts[number - 1], lines[number - 1]);
        text.part(start..start + line.floor_char_boundary(longest)).unwrap_or_default()
    };
    let parts: Vec<Redacted> = kept.iter().map(part).collect();
    let numbers = kept.iter().map(|number| piece.number_of(*number));
    let numbers = numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX)).collect();
    (Redacted::join(&parts.iter().collect::<Vec<_>>(), "\n"), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;

    const FAILS: &str = "[   61.1] cloud-init[1045]: [preflight] Running pre-flight checks\n\
        [   62.1] cloud-init[1045]: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\n\
        [   62.2] cloud-init[1045]: To see the stack trace of this error execute with --v=5 or higher\n";

    fn console(before: usize, after: usize) -> Evidence {
        let noise = "[   10.0] systemd[1]: Started something that is well.\n";
        let boot = "[    0.000000] Linux version 6.8.0-azure\n";
        let text = format!("{boot}{}{FAILS}{}", noise.repeat(before), noise.repeat(after));
        Evidence {
            pieces: vec![Piece::seen(Source::SerialLog, "serial log", &text)],
            ..Evidence::default()
        }
    }

    #[test]
    fn an_excerpt_leads_to_the_same_diagnosis_with_the_same_line() {
        for (before, after) in [(40_000, 100), (10, 50_000), (0, 0), (20_000, 20_000)] {
            let whole = console(before, after);
            let diagnosis = diagnose(&whole);
            assert!(!diagnosis.proof.is_empty());
            let mut excerpt = whole.clone();
            excerpt.cut_to_excerpts(&diagnosis, 16 * 1024);
            assert!(excerpt.size() <= 16 * 1024, "{}", excerpt.size());
            let again = diagnose(&excerpt);
            assert_eq!(again.cause, diagnosis.cause);
            assert_eq!(again.proof[0].line, diagnosis.proof[0].line);
            assert_eq!(again.proof[0].text, diagnosis.proof[0].text);
            // An excerpt of an excerpt, as when a budget gets tight.
            excerpt.cut_to_excerpts(&again, 2 * 1024);
            assert!(excerpt.size() <= 2 * 1024, "{}", excerpt.size());
            let last = diagnose(&excerpt);
            assert_eq!(
                (last.cause, last.proof[0].line),
                (diagnosis.cause, diagnosis.proof[0].line)
            );
        }
    }

    #[test]
    fn one_line_that_is_longer_than_the_excerpt_does_not_take_it_all() {
        let text = format!("{FAILS}{}\nend", "x".repeat(1_000_000));
        let piece = Piece::seen(Source::SerialLog, "serial log", &text);
        let mut evidence = Evidence { pieces: vec![piece], ..Evidence::default() };
        let diagnosis = diagnose(&evidence);
        evidence.cut_to_excerpts(&diagnosis, 8 * 1024);
        assert!(evidence.size() <= 8 * 1024);
        assert!(evidence.pieces[0].text().unwrap().ends_with("end"));
    }
}
