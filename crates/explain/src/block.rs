//! The parts of an explanation.

use bringup_diagnosis::Verdict;
use jiff::Timestamp;

/// An explanation, from its headline to its notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The parts, in reading order.
    pub blocks: Vec<Block>,
}

/// One part of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The verdict with its cause and code, in one sentence. Emphasised according to the verdict.
    Headline(Verdict, String),
    /// One or a few sentences.
    Paragraph(String),
    /// Lines of evidence, with a label for their source.
    Quote {
        /// The source of the lines.
        label: String,
        /// The lines, including the proof.
        rows: Vec<Row>,
    },
    /// A list of entries, with an optional title.
    List {
        /// The title, without a colon.
        title: Option<String>,
        /// The entries.
        entries: Vec<String>,
    },
    /// Paragraphs under a title.
    Section {
        /// The title, without a colon.
        title: String,
        /// The paragraphs.
        paragraphs: Vec<String>,
    },
    /// Short entries under a title, several in a line.
    Packed {
        /// The title, without a colon.
        title: String,
        /// The entries.
        entries: Vec<String>,
    },
    /// Events in order of time. The last event of a failure is emphasised.
    Timeline {
        /// The events, in order of time.
        moments: Vec<Moment>,
        /// Whether the last event is the one at which the bootstrap failed.
        failed: bool,
    },
    /// Labels with their values.
    Facts(Vec<(&'static str, String)>),
    /// Notes about the explanation itself.
    Notes(Vec<String>),
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number of the line in its text, if known.
    pub number: Option<usize>,
    /// The text of the line.
    pub text: String,
    /// Whether this line proves the verdict. A proof is emphasised.
    pub is_proof: bool,
    /// The decisive part of the line, in characters.
    pub span: Option<(usize, usize)>,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The time of the event.
    pub at: Timestamp,
    /// The description of the event.
    pub what: String,
}

impl Explanation {
    /// Appends a part.
    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Appends a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.push(Block::Paragraph(text.into()));
    }
}
