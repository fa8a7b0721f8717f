//! How sure a cause is: as sure as the surest source that names it, and a step more where two that
//! do not repeat each other name it.
//!
//! A source points where the best of its lines points. Another source that points elsewhere takes
//! nothing away: which of them decides is settled before.

use bringup_contract::Cause;
use bringup_contract::arm::{self, ArmCode, Class};
use bringup_contract::cse::{self, NodeSummary, Reading};

use crate::boot_log;
use crate::diagnosis::Confidence;
use crate::evidence::Source;
use crate::lines::normal;
use crate::matcher::Finding;
use crate::rule::Strength;
use crate::verdict::Case;

/// From this rank on a sign only says that something before it went wrong.
const CONSEQUENCE: u16 = 200;

/// What one piece of evidence says by its codes.
pub(crate) struct Heard {
    pub(crate) reading: Reading,
    /// Its most specific ARM code, and how vague that is.
    pub(crate) arm_code: Option<(u8, String)>,
}

impl Heard {
    pub(crate) fn of(text: &str) -> Self {
        let mut stated = arm::stated(text);
        // The guest agent logs codes of its own.
        stated.retain(|one| !is_of_agent(text, one.at));
        let arm_code =
            arm::most_specific(&stated).map(|found| (arm::vagueness(found), found.code.to_owned()));
        Self { reading: cse::read(text), arm_code }
    }
}

/// Whether the line at a place is one of the log of the guest agent.
fn is_of_agent(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |start| start + 1);
    let head: String = text[start..at].chars().take(80).collect();
    head.contains(" ExtHandler ") || head.contains(" Daemon Daemon ")
}

/// The component that wrote a piece of evidence. All pieces of one component count as one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// bringup-node, in its summary and all that it prints around it.
    Node,
    /// The bootstrap scripts: their log, their result, and the extension that runs them.
    Scripts,
    /// A run command.
    Command,
    /// Units of systemd.
    Units,
    /// The serial console.
    Console,
    /// Azure, and what Kubernetes repeats of it.
    Azure,
}

/// A source that names the cause.
struct Witness<'a> {
    /// The component that writes a text of an unknown kind is not known.
    voice: Option<Voice>,
    piece: usize,
    confidence: Confidence,
    /// The lines it rests on, as they are compared; a code rests on none.
    lines: Vec<String>,
    finding: Option<&'a Finding>,
}

impl Case<'_> {
    /// How sure a cause is that was decided on with this confidence.
    pub(crate) fn confidence_in(&self, cause: Cause, decided: Confidence) -> Confidence {
        if decided == Confidence::High || cause == Cause::Unknown {
            return decided;
        }
        let witnesses = self.witnesses(cause);
        let surest = witnesses.iter().map(|witness| witness.confidence).fold(decided, Ord::max);
        let is_confirmed = witnesses.iter().any(|one| self.has_second(one, &witnesses));
        match surest {
            Confidence::Low if is_confirmed => Confidence::Medium,
            // Two that both saw no end may still wait for the same thing.
            Confidence::Medium if is_confirmed && self.is_over() => Confidence::High,
            Confidence::Low | Confidence::Medium | Confidence::High => surest,
        }
    }

    /// The line of another source than the one that decided, where it confirms the cause.
    pub(crate) fn second(&self, cause: Cause, winner: Option<&Finding>) -> Option<&Finding> {
        if cause == Cause::Unknown {
            return None;
        }
        let decided = match self.told_by_the_node() {
            Some(_) => Some(Voice::Node),
            None => winner.and_then(|finding| self.voice(finding.piece)),
        };
        let witnesses = self.witnesses(cause);
        let others = witnesses.iter().filter(|one| one.voice != decided);
        let confirming = others.filter(|one| self.has_second(one, &witnesses));
        confirming.filter_map(|one| one.finding).min_by_key(|finding| self.order(finding))
    }

    /// What the node itself names.
    pub(crate) fn told_by_the_node(&self) -> Option<(Cause, Confidence)> {
        let node = self.reading.node.as_ref()?;
        Some((node.cause?, sureness(node)))
    }

    /// How sure a line makes its cause by itself.
    pub(crate) fn confidence_of(&self, finding: &Finding) -> Confidence {
        let confidence = match finding.strength {
            Strength::Strong if finding.warning => Confidence::Medium,
            Strength::Strong => Confidence::High,
            Strength::Fair => Confidence::Medium,
            Strength::Weak => Confidence::Low,
        };
        // An exit code says that it is over, where the log itself does not.
        let is_over = self.code().is_some_and(|code| code != 0);
        if self.doubted[finding.piece] && !is_over
            || finding.signature.is_none() && self.is_contradicted(finding)
        {
            confidence.min(Confidence::Medium)
        } else {
            confidence
        }
    }

    /// Whether another line of the same text proves another cause as well, and neither explains the other.
    fn is_contradicted(&self, finding: &Finding) -> bool {
        self.findings.iter().any(|other| {
            other.piece == finding.piece
                && other.line != finding.line
                && other.rule.cause != finding.rule.cause
                && other.rule.cause.family() != finding.rule.cause.family()
                && other.strength == Strength::Strong
                && !other.warning
                && other.rank < CONSEQUENCE
                && !self.follows_from_another(other)
        })
    }

    /// Whether a line is the node's summary, which quotes what the node found.
    pub(crate) fn is_summary(&self, piece: usize, line: usize) -> bool {
        let line = self.pages[piece].normal_line(line);
        self.heard.iter().any(|heard| heard.reading.node.is_some())
            && (line.contains("bringup-node/1 ") || line.contains("'bringup':"))
    }

    /// All witnesses that name a cause, piece by piece.
    fn witnesses(&self, cause: Cause) -> Vec<Witness<'_>> {
        let mut witnesses = Vec::new();
        for (piece, heard) in self.heard.iter().enumerate() {
            let voice = self.voice(piece);
            let node = heard.reading.node.as_ref().filter(|node| node.cause.is_some());
            if let Some(node) = node.filter(|node| node.cause == Some(cause)) {
                let lines = node.evidence.iter().map(|line| compared(&normal(line))).collect();
                let (voice, confidence) = (Some(Voice::Node), sureness(node));
                witnesses.push(Witness { voice, piece, confidence, lines, finding: None });
            }
            // What the node prints around its summary is in the summary.
            if node.is_some() && voice == Some(Voice::Node) {
                continue;
            }
            if let Some(finding) = self.best_of(piece).filter(|it| it.rule.cause == cause) {
                let lines = vec![compared(self.pages[piece].normal_line(finding.line))];
                let (confidence, finding) = (self.confidence_of(finding), Some(finding));
                witnesses.push(Witness { voice, piece, confidence, lines, finding });
            }
            let by_code =
                (self.only_cause_of_code(&heard.reading) == Some(cause)).then_some(Confidence::Low);
            let by_arm = (heard.named_by_azure() == Some(cause)).then_some(Confidence::Medium);
            if let Some(confidence) = by_arm.or(by_code) {
                let lines = Vec::new();
                witnesses.push(Witness { voice, piece, confidence, lines, finding: None });
            }
        }
        witnesses
    }

    /// The line that decides within a piece. One that calls itself a warning confirms nothing.
    fn best_of(&self, piece: usize) -> Option<&Finding> {
        let own = self.findings.iter().filter(|finding| finding.piece == piece);
        own.filter(|finding| !self.is_summary(piece, finding.line))
            .min_by_key(|finding| self.order(finding))
            .filter(|finding| !finding.warning)
    }

    /// The cause of an exit code that was never seen with another.
    fn only_cause_of_code(&self, reading: &Reading) -> Option<Cause> {
        let is_this = self.code().is_some() && reading.code == self.reading.code;
        if !is_this {
            return None;
        }
        match self.candidate_causes().as_slice() {
            [only] if self.cause_of_code() == *only => Some(*only),
            _ => None,
        }
    }

    fn voice(&self, piece: usize) -> Option<Voice> {
        let source = self.evidence.pieces[piece].source;
        if source != Source::SerialLog && self.heard[piece].reading.node.is_some() {
            return Some(Voice::Node);
        }
        match source {
            Source::Text => None,
            Source::Extension | Source::ProvisionResult | Source::ScriptLog => Some(Voice::Scripts),
            // An error about an extension repeats what that said.
            Source::Arm | Source::ActivityLog | Source::Kubernetes
                if self.pages[piece].says("extension") =>
            {
                Some(Voice::Scripts)
            }
            Source::Arm | Source::ActivityLog | Source::Kubernetes => Some(Voice::Azure),
            Source::RunCommand => Some(Voice::Command),
            Source::Journal => Some(Voice::Units),
            Source::SerialLog => Some(Voice::Console),
            Source::NodeReport => Some(Voice::Node),
        }
    }

    /// Whether another source names the cause as well, and is none that repeats this one.
    fn has_second(&self, one: &Witness<'_>, witnesses: &[Witness<'_>]) -> bool {
        let is_other = |other: &&Witness<'_>| {
            one.voice.is_some() && other.voice.is_some() && one.voice != other.voice
        };
        let mut others = witnesses.iter().filter(is_other);
        others.any(|other| !self.repeats(one, other) && !self.repeats(other, one))
    }

    /// Whether a line of one witness stands where another speaks. The node speaks in its summary
    /// only, where that stands on a console.
    fn repeats(&self, one: &Witness<'_>, other: &Witness<'_>) -> bool {
        let page = &self.pages[other.piece];
        let is_own = one.piece == other.piece && one.voice != Some(Voice::Node);
        one.lines.iter().any(|line| {
            let is_quoted = other.lines.iter().any(|quoted| quoted.contains(line.as_str()));
            let mut places = page.each(line);
            is_quoted || !is_own && places.any(|place| !self.is_summary(other.piece, place))
        })
    }

    /// Whether anything says that the bootstrap has ended.
    fn is_over(&self) -> bool {
        let mut consoles = self.cuts.iter().zip(&self.doubted);
        self.code().is_some_and(|code| code != 0)
            || self.reading.node.is_some()
            || self.heard.iter().any(|heard| heard.arm_code.is_some())
            || self.pages.iter().any(|page| page.says("enable failed"))
            || consoles.any(|(cut, doubted)| cut.is_some() && !doubted)
    }
}

impl Heard {
    /// The cause that the ARM code names, unless it only follows from an earlier error.
    fn named_by_azure(&self) -> Option<Cause> {
        let (_, code) = self.arm_code.as_ref()?;
        match ArmCode::find(code) {
            Some(known) if known.class == Class::Echo => None,
            Some(known) => known.cause,
            None => arm::cause_by_name(code),
        }
    }
}

/// How sure the node was, as far as its summary is whole.
fn sureness(node: &NodeSummary) -> Confidence {
    match node.confidence.as_deref() {
        Some("high") if node.whole => Confidence::High,
        Some("high" | "medium") => Confidence::Medium,
        _ => Confidence::Low,
    }
}

/// A line without what differs where it is copied: what a console puts before it, where it was cut.
fn compared(line: &str) -> String {
    boot_log::said(line).trim().trim_end_matches('…').to_owned()
}
