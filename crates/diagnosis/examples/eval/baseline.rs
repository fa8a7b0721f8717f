//! The committed scores, which may only rise.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::Score;

/// The number of right cases by set and aspect.
pub(super) struct Baseline(BTreeMap<String, BTreeMap<String, usize>>);

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("eval-baseline.json")
}

impl Baseline {
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(path()).context("read the baseline")?;
        Ok(Self(serde_json::from_str(&text).context("read the baseline")?))
    }

    /// The score that is expected; 0 for one that is new.
    pub(super) fn of(&self, score: &Score) -> usize {
        let expected = self.0.get(score.set).and_then(|set| set.get(score.what));
        expected.copied().unwrap_or_default()
    }

    /// Writes the scores that are higher than what is expected; lower ones change nothing.
    pub(super) fn raise(&mut self, scores: &[Score]) -> Result<()> {
        for score in scores {
            let set = self.0.entry(score.set.to_owned()).or_default();
            let expected = set.entry(score.what.to_owned()).or_default();
            *expected = score.right.max(*expected);
        }
        let text = serde_json::to_string_pretty(&self.0).context("write the baseline")?;
        std::fs::write(path(), text + "\n").context("write the baseline")
    }
}
