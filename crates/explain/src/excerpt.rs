//! The line that proves a verdict, with a caret beneath its decisive part, and the lines before and after it.

use std::fmt::Write as _;

use bringup_diagnosis::diagnosis::Proof;
use bringup_diagnosis::lines::{self, Line};
use bringup_diagnosis::{Evidence, Piece, Source};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::block::Row;
use crate::emphasis::{Emphasis, Paint};
use crate::layout::COLUMNS;

const MARGIN: &str = "  ";
const GAP: &str = "...";

/// A proof with its neighbouring lines; if its text is not available, the proof alone.
pub(crate) fn rows(proof: &Proof, evidence: &Evidence) -> Vec<Row> {
    let (lines, marked) = evidence
        .pieces
        .iter()
        .filter(|piece| piece.source == proof.source && piece.name == proof.name)
        .find_map(|piece| around(proof, piece))
        .unwrap_or_else(|| {
            (vec![Line { number: proof.line, text: proof.text.to_string().into() }], 0)
        });
    let row = |(index, line): (usize, &Line<'_>)| Row {
        number: Some(line.number),
        text: line.text.to_string(),
        is_proof: index == marked,
        span: (index == marked).then_some(proof.span),
    };
    lines.iter().enumerate().map(row).collect()
}

/// The line of the proof and its neighbours, and the index of the proof among them.
fn around<'a>(proof: &Proof, piece: &'a Piece) -> Option<(Vec<Line<'a>>, usize)> {
    let mut lines = lines::split(piece.text()?);
    let at = lines
        .iter()
        .position(|line| line.number == proof.line && line.text.starts_with(proof.text.as_str()))?;
    // A console contains unrelated lines, so related ones may be a little further away.
    let near = if piece.source == Source::SerialLog { 2 } else { 1 };
    lines.truncate(at + 1 + near);
    let first = at.saturating_sub(near);
    Some((lines.split_off(first), at - first))
}

/// Draws lines after their numbers, with a caret beneath the decisive part.
pub(crate) fn draw(rows: &[Row], paint: Paint) -> String {
    let number = |row: &Row| row.number.map(|number| number.to_string()).unwrap_or_default();
    let digits = rows.iter().map(|row| number(row).len()).max().unwrap_or(1);
    let room = COLUMNS - MARGIN.len() - digits - " | ".len();
    let mut drawn = String::new();
    for row in rows {
        let characters: Vec<char> = row.text.chars().map(plain).collect();
        let (shown, caret) = window(&characters, row.span.unwrap_or((0, 0)), room);
        let shown = shown.trim_end();
        let shown = if row.is_proof { paint(Emphasis::Proof, shown) } else { shown.to_owned() };
        let _ = writeln!(drawn, "{MARGIN}{:>digits$} | {shown}", number(row));
        if caret.1 > 0 {
            let (before, under) = (" ".repeat(caret.0), "^".repeat(caret.1));
            let _ = writeln!(drawn, "{MARGIN}{:>digits$} | {before}{under}", "");
        }
    }
    drawn
}

/// Replaces a control character, whose width is not one column, by a space.
fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

/// The part of a line that fits, including its span; and the position and width of the span, in columns.
fn window(line: &[char], (from, to): (usize, usize), room: usize) -> (String, (usize, usize)) {
    let (from, to) = (from.min(line.len()), to.min(line.len()).max(from.min(line.len())));
    let width = |part: &[char]| -> usize { part.iter().map(|one| one.width().unwrap_or(0)).sum() };
    // If the line is too long, a third of the room is for the text before the span.
    let mut start = 0;
    if width(&line[..to]) + GAP.len() > room && width(line) > room {
        start = from;
        while start > 0 && width(&line[start - 1..from]) <= room / 3 {
            start -= 1;
        }
    }
    let mut shown = if start > 0 { GAP.to_owned() } else { String::new() };
    let column = shown.width() + width(&line[start..from]);
    let rest = &line[start..];
    if shown.width() + width(rest) <= room {
        shown.extend(rest);
    } else {
        let mut used = shown.width();
        for character in rest {
            used += character.width().unwrap_or(0);
            if used + GAP.len() > room {
                break;
            }
            shown.push(*character);
        }
        shown.push_str(GAP);
    }
    let under = width(&line[from..to]).min(shown.width().saturating_sub(column));
    (shown, (column, under))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, text: &str) -> Row {
        Row { number: Some(number), text: text.to_owned(), is_proof: false, span: None }
    }

    fn draw(lines: &[Row], marked: usize, span: (usize, usize)) -> String {
        let mut rows = lines.to_vec();
        rows[marked] = Row { is_proof: true, span: Some(span), ..rows[marked].clone() };
        super::draw(&rows, |_, text| text.to_owned())
    }

    #[test]
    fn the_caret_stands_beneath_the_sign() {
        let drawn =
            draw(&[line(9, "before"), line(10, "it is ‘missing’"), line(11, "after")], 1, (6, 15));
        assert_eq!(
            drawn,
            "   9 | before\n  10 | it is ‘missing’\n     |       ^^^^^^^^^\n  11 | after\n"
        );
    }

    #[test]
    fn a_sign_far_to_the_right_is_brought_into_view() {
        let text = format!("{}command not found{}", "x".repeat(3000), "y".repeat(3000));
        let drawn = draw(&[line(1, &text)], 0, (3000, 3017));
        let rows: Vec<&str> = drawn.lines().collect();
        assert!(rows.iter().all(|row| row.width() <= COLUMNS), "{drawn}");
        let at = rows[0].find("command not found").unwrap();
        assert_eq!(rows[1].find('^'), Some(at), "{drawn}");
        assert_eq!(rows[1].matches('^').count(), 17);
    }

    #[test]
    fn wide_characters_and_wrong_spans_do_not_matter() {
        let drawn = draw(&[line(1, "失敗\tcommand not found")], 0, (3, 20));
        assert_eq!(drawn.lines().nth(1).unwrap().trim_end().len(), "    | ".len() + 5 + 17);
        draw(&[line(1, "short")], 0, (400, 900));
        draw(&[line(1, "")], 0, (3, 1));
        draw(&[line(1, &"失".repeat(500))], 0, (0, 500));
    }

    #[test]
    fn of_a_serial_log_two_lines_before_and_after_are_shown() {
        let text = "1\n2\n3\ndisk: No space left on device\n5\n6\n7\n";
        for (source, first, last) in [(Source::SerialLog, "2", "6"), (Source::ScriptLog, "3", "5")]
        {
            let pieces = vec![Piece::seen(source, "log", text)];
            let evidence = Evidence { pieces, ..Evidence::default() };
            let found = bringup_diagnosis::diagnose(&evidence);
            let shown = super::draw(&rows(&found.proof[0], &evidence), |_, text| text.to_owned());
            let rows: Vec<&str> = shown.lines().collect();
            assert!(rows[0].ends_with(&format!("| {first}")), "{shown}");
            assert!(rows[rows.len() - 1].ends_with(&format!("| {last}")), "{shown}");
        }
    }
}
