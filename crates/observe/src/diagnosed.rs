//! Evidence together with its diagnosis, which is computed once and shared.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bringup_contract::Cause;
use bringup_diagnosis::evidence::Content;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, Verdict, diagnose};

/// The prefix of the summary that bringup-node prints on the console and in extensions.
pub(crate) const SUMMARY: &str = "BRINGUP-NODE/1 ";

/// Evidence and its diagnosis. The diagnosis is computed at the first call of [`Self::diagnosis`], and again
/// only after the evidence has changed.
#[derive(Debug, Clone, Default)]
pub struct DiagnosedEvidence {
    evidence: Evidence,
    diagnosis: OnceLock<Arc<Diagnosis>>,
    is_proven_by_guest: OnceLock<bool>,
}

impl From<Evidence> for DiagnosedEvidence {
    fn from(evidence: Evidence) -> Self {
        Self { evidence, ..Self::default() }
    }
}

impl Deref for DiagnosedEvidence {
    type Target = Evidence;

    fn deref(&self) -> &Evidence {
        &self.evidence
    }
}

impl DiagnosedEvidence {
    /// Mutable access to the evidence. Discards the diagnosis.
    pub fn change(&mut self) -> &mut Evidence {
        self.diagnosis = OnceLock::new();
        self.is_proven_by_guest = OnceLock::new();
        &mut self.evidence
    }

    /// The diagnosis of the evidence. The first call takes time in proportion to the size of the evidence.
    pub fn diagnosis(&self) -> &Arc<Diagnosis> {
        self.diagnosis.get_or_init(|| Arc::new(diagnose(&self.evidence)))
    }

    /// Whether the console or bringup-node alone proves that the bootstrap failed, and why. Output of a
    /// user's own extensions can explain a failure, but proves none.
    pub fn is_proven_by_guest(&self) -> bool {
        *self.is_proven_by_guest.get_or_init(|| {
            let counts = |piece: &&Piece| is_of_guest(piece);
            if self.evidence.pieces.iter().all(|piece| counts(&piece)) {
                return proves(self.diagnosis());
            }
            let pieces = self.evidence.pieces.iter().filter(counts).cloned().collect();
            let Evidence { image_version, os, api_server, signatures, .. } = &self.evidence;
            proves(&diagnose(&Evidence {
                pieces,
                image_version: *image_version,
                os: *os,
                api_server: api_server.clone(),
                signatures: signatures.clone(),
            }))
        })
    }

    /// Cuts each piece to an excerpt of at most `most` bytes. The diagnosis of the whole text stays.
    pub fn cut_to_excerpts(&mut self, most: usize) {
        self.is_proven_by_guest();
        let diagnosis = self.diagnosis().clone();
        self.evidence.cut_to_excerpts(&diagnosis, most);
    }
}

fn is_of_guest(piece: &Piece) -> bool {
    match &piece.content {
        Content::Seen(text) => piece.source == Source::SerialLog || text.as_str().contains(SUMMARY),
        Content::Missing(_) | Content::NotAsked => true,
    }
}

fn proves(diagnosis: &Diagnosis) -> bool {
    diagnosis.verdict == Verdict::Failed
        && diagnosis.cause.reason != Cause::Unknown
        && diagnosis.cause.confidence == Confidence::High
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Piece {
        Piece::seen(Source::SerialLog, "serial log", text)
    }

    #[test]
    fn evidence_is_diagnosed_once_and_again_only_after_it_has_changed() {
        let mut evidence = DiagnosedEvidence::default();
        evidence.change().pieces.push(console("kubelet: no such host"));
        let first = evidence.diagnosis().clone();
        assert!(Arc::ptr_eq(&first, evidence.diagnosis()));
        assert!(Arc::ptr_eq(&first, evidence.clone().diagnosis()), "a copy shares it");
        evidence.cut_to_excerpts(4);
        assert!(Arc::ptr_eq(&first, evidence.diagnosis()), "of the whole text");
        evidence.change().pieces.clear();
        assert!(!Arc::ptr_eq(&first, evidence.diagnosis()));
    }
}
