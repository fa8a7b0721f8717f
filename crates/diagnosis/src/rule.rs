//! What a rule is made of: a cause, the signs by which it is known, and what to do about it.

use bringup_contract::Cause;
use regex::Regex;

/// How much a sign proves by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// It points that way.
    Weak,
    /// It speaks for it.
    Fair,
    /// It proves it.
    Strong,
}

/// One sign: parts of a line that stand together.
///
/// Texts are compared in lower case and with `'` for every kind of quote.
#[derive(Debug)]
pub struct Sign {
    /// All of these stand in one line; the first is what is searched for.
    pub all: &'static [&'static str],
    /// None of these stands in that line.
    pub none: &'static [&'static str],
    /// One of these stands somewhere in the same piece of evidence; empty: nothing is asked.
    pub near: &'static [&'static str],
    /// The exit code is one of these; empty: any or none.
    pub codes: &'static [i32],
    /// The log shows an earlier boot, or an earlier attempt to join.
    pub again: bool,
    /// Of several signs, the one with the lowest rank decides.
    pub rank: u16,
    /// How much it proves.
    pub strength: Strength,
    /// A pattern that stands in the line, instead of parts of it; only what users bring has one.
    pub pattern: Option<&'static Regex>,
}

impl Sign {
    /// A sign that proves the cause.
    pub const fn new(rank: u16, all: &'static [&'static str]) -> Self {
        Self {
            all,
            none: &[],
            near: &[],
            codes: &[],
            again: false,
            rank,
            strength: Strength::Strong,
            pattern: None,
        }
    }

    /// Where in a line it stands, in characters: from where, and how many. The line comes as it is
    /// compared, and as it stands.
    pub(crate) fn place(&self, normal: &str, line: &str) -> (usize, usize) {
        let count = |text: &str| text.chars().count();
        match (self.pattern, self.all.first()) {
            (Some(pattern), _) => pattern
                .find(line)
                .map_or((0, 0), |found| (count(&line[..found.start()]), count(found.as_str()))),
            (None, Some(part)) => {
                (normal.find(part).map_or(0, |at| count(&normal[..at])), count(part))
            }
            (None, None) => (0, 0),
        }
    }

    /// The sign speaks for the cause without proving it.
    #[must_use]
    pub const fn fair(mut self) -> Self {
        self.strength = Strength::Fair;
        self
    }

    /// The sign only points that way.
    #[must_use]
    pub const fn weak(mut self) -> Self {
        self.strength = Strength::Weak;
        self
    }

    /// Not when one of these stands in the same line.
    #[must_use]
    pub const fn unless(mut self, none: &'static [&'static str]) -> Self {
        self.none = none;
        self
    }

    /// Only when one of these stands in the same piece of evidence.
    #[must_use]
    pub const fn near(mut self, near: &'static [&'static str]) -> Self {
        self.near = near;
        self
    }

    /// Only after an earlier boot or an earlier attempt to join.
    #[must_use]
    pub const fn again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Only with one of these exit codes.
    #[must_use]
    pub const fn with_codes(mut self, codes: &'static [i32]) -> Self {
        self.codes = codes;
        self
    }
}

/// One rule: one cause, one file, one page of documentation.
#[derive(Debug)]
pub struct Rule {
    /// What it finds.
    pub cause: Cause,
    /// The finding in a few words.
    pub title: &'static str,
    /// Lines in which it shows, for its page.
    pub looks_like: &'static str,
    /// Why the exit code misleads, for its page.
    pub misleads: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// How it is known.
    pub signs: &'static [Sign],
    /// Finds what the line is about (a program, a host), to be named in the summary.
    pub subject: Option<fn(&str) -> Option<String>>,
}

impl Rule {
    /// The rank of its most important sign, one later: where a fault is decided by its endpoint, a sign
    /// that is peculiar to the cause goes first.
    pub(crate) fn typical_rank(&self) -> u16 {
        let ranks = self.signs.iter().map(|sign| sign.rank);
        ranks.min().unwrap_or_default().saturating_add(1)
    }
}
