//! The state that every command uses.

use crate::aks::environment::Variables;
use crate::host::paths::Root;
use crate::log::Log;
use crate::run::{Identity, Run};
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::summary::Summary;

/// The state that every command uses.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) root: Root,
    pub(crate) settings: Settings,
    pub(crate) log: Log,
    /// The values that must not appear in any output.
    pub(crate) secrets: Secrets,
    /// The variables of the scripts, once they are known.
    pub(crate) variables: Variables,
}

impl Agent {
    /// The same agent with additional secrets.
    pub(crate) fn knowing(&self, secrets: &Secrets) -> Self {
        let secrets = self.secrets.and(secrets);
        let log = self.log.knowing(&secrets);
        let variables = self.variables.clone();
        Self { root: self.root.clone(), settings: self.settings.clone(), log, secrets, variables }
    }

    /// The same agent with the variables of the scripts.
    pub(crate) fn telling(self, variables: Variables) -> Self {
        Self { variables, ..self }
    }

    /// Adds the run, the boot and the report to a summary.
    pub(crate) fn stamp(&self, summary: &mut Summary, run: Option<&Run>, identity: &Identity) {
        summary.run = run.map(|run| run.id.clone());
        summary.boot = identity.boot_short();
        let report = self.root.report();
        summary.report = report.exists().then(|| self.root.told(&report));
    }
}
