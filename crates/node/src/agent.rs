//! What every command has at hand.

use crate::aks::environment::Variables;
use crate::host::paths::Root;
use crate::log::Log;
use crate::run::{Identity, Run};
use crate::secrets::Secrets;
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
    /// What must not be seen, wherever it turns up.
    pub(crate) secrets: Secrets,
    /// What the scripts are told, once that is known.
    pub(crate) variables: Variables,
}

impl Agent {
    /// The same, when more is known of what must not be seen.
    pub(crate) fn knowing(&self, secrets: &Secrets) -> Self {
        let secrets = self.secrets.and(secrets);
        let log = self.log.knowing(&secrets);
        let variables = self.variables.clone();
        Self { root: self.root.clone(), settings: self.settings.clone(), log, secrets, variables }
    }

    /// The same, when it is known what the scripts are told.
    pub(crate) fn telling(self, variables: Variables) -> Self {
        Self { variables, ..self }
    }

    /// Puts the run, the boot and the report into a summary.
    pub(crate) fn stamp(&self, summary: &mut Summary, run: Option<&Run>, identity: &Identity) {
        summary.run = run.map(|run| run.id.clone());
        summary.boot = identity.boot_short();
        let report = self.root.report();
        summary.report = report.exists().then(|| self.root.told(&report));
    }
}
