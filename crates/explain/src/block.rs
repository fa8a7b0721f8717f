//! What an explanation consists of.

use bringup_diagnosis::Verdict;
use jiff::Timestamp;

/// An explanation, from its headline to its notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The parts, in the order in which they are read.
    pub blocks: Vec<Block>,
}

/// One part of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The verdict with its cause and code, in one sentence. Emphasized by the verdict.
    Headline(Verdict, String),
    /// A sentence or a few.
    Paragraph(String),
    /// Lines of evidence, with a label that says where they are from.
    Quote {
        /// Where the lines are from.
        label: String,
        /// The lines, the proof among them.
        rows: Vec<Row>,
    },
    /// A list of entries, under a title if it has one.
    List {
        /// The title, without a colon.
        title: Option<String>,
        /// The entries.
        entries: Vec<String>,
    },
    /// Prose under a title.
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
    /// What happened when. The last step of a failure is emphasized.
    Timeline {
        /// What happened, in order.
        moments: Vec<Moment>,
        /// Whether the last moment is where the bootstrap failed.
        failed: bool,
    },
    /// Labels with their values.
    Facts(Vec<(&'static str, String)>),
    /// Remarks about the explanation itself.
    Notes(Vec<String>),
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number of the line in its text, where that is known.
    pub number: Option<usize>,
    /// The line.
    pub text: String,
    /// Whether this line proves the verdict. Emphasized.
    pub is_proof: bool,
    /// The part of the line that decides, in characters.
    pub span: Option<(usize, usize)>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// What.
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
