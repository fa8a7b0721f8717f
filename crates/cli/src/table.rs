//! Columns, and ages in the format of tables.

use jiff::{SignedDuration, Timestamp};
use unicode_width::UnicodeWidthStr as _;

/// The number of spaces between two columns.
const GAP: usize = 2;

/// Rows in columns as wide as their widest cell.
pub(crate) fn columns(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
        cells.chain([heads[at].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    for row in [&heads].into_iter().chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width() + GAP));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// An age in the format of kubectl: `4m`, `3h`, `2d`.
pub(crate) fn age(since: SignedDuration) -> String {
    let seconds = since.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time in the past, such as `4m ago`.
pub(crate) fn ago(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(
        || "at an unknown time".to_owned(),
        |at| format!("{} ago", age(at.duration_until(now))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [vec!["a".to_owned(), "失敗".to_owned()], vec!["long".to_owned(), String::new()]];
        assert_eq!(columns(&["N", "CAUSE"], &rows), "N     CAUSE\na     失敗\nlong\n");
    }

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, told) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (200_000, "2d"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), told);
        }
    }
}
