//! The emphasised parts of an explanation, and their colours in a terminal.

use bringup_diagnosis::Verdict;

/// The parts that can be emphasised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emphasis {
    Verdict(Verdict),
    FailingStep,
    Proof,
}

impl Emphasis {
    /// The parameters of the terminal's "select graphic rendition".
    fn colour(self) -> &'static str {
        match self {
            Self::Verdict(Verdict::Failed) => "1;31",
            Self::Verdict(Verdict::Succeeded) => "1;32",
            Self::Verdict(Verdict::Running | Verdict::Unknown) => "1;33",
            Self::FailingStep => "33",
            Self::Proof => "1",
        }
    }
}

/// A function that emphasises a text, or returns it unchanged.
pub(crate) type Paint = fn(Emphasis, &str) -> String;

pub(crate) fn plain(_: Emphasis, text: &str) -> String {
    text.to_owned()
}

/// Colours each line from its first letter on, so that indents stay uncoloured.
pub(crate) fn coloured(emphasis: Emphasis, text: &str) -> String {
    let line = |line: &str| {
        let letters = line.trim_start_matches(' ');
        let (indent, letters) = line.split_at(line.len() - letters.len());
        let (letters, end) = letters.split_at(letters.trim_end_matches('\n').len());
        if letters.is_empty() {
            return line.to_owned();
        }
        format!("{indent}\u{1b}[{}m{letters}\u{1b}[0m{end}", emphasis.colour())
    };
    text.split_inclusive('\n').map(line).collect()
}
