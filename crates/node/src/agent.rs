//! What every command has at hand.

use crate::log::Log;
use crate::paths::Root;
use crate::run::{Identity, Run};
use crate::settings::Settings;
use crate::summary::Summary;

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Where everything is.
    pub(crate) root: Root,
    /// What is set.
    pub(crate) settings: Settings,
    /// The log.
    pub(crate) log: Log,
}

impl Agent {
    /// Puts the run, the boot and the report into a summary.
    pub(crate) fn stamp(&self, summary: &mut Summary, run: Option<&Run>, identity: &Identity) {
        summary.run = run.map(|run| run.id.clone());
        summary.boot = identity.boot_short();
        let report = self.root.report();
        summary.report = report.exists().then(|| self.root.told(&report));
    }
}
