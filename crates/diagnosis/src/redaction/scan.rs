//! One pass over a view: every place where a rule could strike is shown to it.

use std::ops::Range;

use super::anchors::Anchors;
use super::rules::{client_secret, complex_password, hex_dump};
use super::runs;
use super::view::View;
use super::work;

/// How deep inside encodings a text was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The text itself.
    Text,
    /// Decoded once.
    Decoded,
    /// Decoded twice; what is encoded again is not looked into, and goes.
    DecodedTwice,
}

impl Depth {
    /// The depth of what is decoded out of this one.
    pub(super) fn deeper(self) -> Option<Self> {
        match self {
            Self::Text => Some(Self::Decoded),
            Self::Decoded => Some(Self::DecodedTwice),
            Self::DecodedTwice => None,
        }
    }
}

/// A part of the view that has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) rule: &'static str,
    /// Where the rule looked when it found it.
    pub(super) place: usize,
    /// A quotation mark to put around the marker, where the text would not be JSON without it.
    pub(super) quote: Option<usize>,
}

/// What is looked at once only, since many anchors can lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A name with `key` in it.
    Key,
    /// The first part of what could be a JSON web token.
    JsonWebToken,
    /// An object of Kubernetes.
    Manifest,
}

/// What the rules have found so far.
pub(super) struct Scan<'a> {
    pub(super) view: &'a View,
    pub(super) depth: Depth,
    found: Vec<Found>,
    place: usize,
    public: Vec<Range<usize>>,
    resume: usize,
    looked: [usize; 3],
    at_sign: Option<usize>,
}

impl Scan<'_> {
    /// Removes a part of the view. The scan goes on after it.
    pub(super) fn strike(&mut self, range: Range<usize>, rule: &'static str) {
        self.resume = self.resume.max(range.end);
        if !range.is_empty() {
            self.found.push(Found { range, rule, place: self.place, quote: None });
        }
    }

    /// Removes a bare value of JSON. The marker gets quotation marks like the one at `quote`.
    pub(super) fn strike_bare(&mut self, range: Range<usize>, rule: &'static str, quote: usize) {
        self.resume = self.resume.max(range.end);
        self.found.push(Found { range, rule, place: self.place, quote: Some(quote) });
    }

    /// Notes that a part looks like a key and is none, such as a certificate.
    pub(super) fn keep(&mut self, range: Range<usize>) {
        self.public.push(range);
    }

    /// Says where the next rule will look.
    pub(super) fn look_at(&mut self, place: usize) {
        self.place = place;
    }

    /// No anchor before `position` is looked at any more.
    pub(super) fn skip_to(&mut self, position: usize) {
        self.resume = self.resume.max(position);
    }

    /// Whether what begins at `position` was not looked at before.
    pub(super) fn is_new(&self, look: Look, position: usize) -> bool {
        position >= self.looked[look as usize]
    }

    /// Notes that everything before `end` was looked at.
    pub(super) fn note(&mut self, look: Look, end: usize) {
        self.looked[look as usize] = self.looked[look as usize].max(end);
    }

    /// Where the next `@` from `position` on is, or the end of the view. Positions ascend, so the view is
    /// searched once, however many addresses it holds.
    pub(super) fn next_at_sign(&mut self, position: usize) -> usize {
        match self.at_sign {
            Some(at) if at >= position => at,
            _ => {
                let end = self.view.len();
                let start = position.min(end);
                let at = self.view.find(start..end, b"@").map_or(end, |found| start + found);
                self.at_sign = Some(at);
                at
            }
        }
    }

    /// How many parts are struck so far.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Where the last strike or skipped name ended; rules do not look back beyond it.
    pub(super) fn resume(&self) -> usize {
        self.resume
    }

    /// The parts that are decided, struck or kept, sorted by their beginning.
    pub(super) fn decided(&self) -> Vec<Range<usize>> {
        let struck = self.found.iter().map(|found| found.range.clone());
        let mut decided: Vec<_> = struck.chain(self.public.iter().cloned()).collect();
        decided.sort_unstable_by_key(|range| range.start);
        decided
    }
}

/// Everything in the view that has to go.
pub(super) fn examine(view: &View, depth: Depth) -> Vec<Found> {
    work::add(view.len());
    let mut scan = Scan {
        view,
        depth,
        found: Vec::new(),
        place: 0,
        public: Vec::new(),
        resume: 0,
        looked: [0; 3],
        at_sign: None,
    };
    for (examine, anchor) in Anchors::of(view) {
        if anchor.start >= scan.resume {
            scan.look_at(anchor.start);
            examine(&mut scan, anchor);
        }
    }
    client_secret::examine(&mut scan);
    complex_password::examine(&mut scan);
    hex_dump::examine(&mut scan);
    runs::examine(&mut scan);
    scan.found
}
