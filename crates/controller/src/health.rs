//! What is wrong with us: rights that are missing, an Azure that does not answer. Said once in
//! the log, and for as long as it lasts on `/readyz` and in a metric.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_diagnosis::redaction::redact;
use kube::core::Status;
use tracing::{info, warn};

use crate::rights::Needed;

/// Something we have to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Watch NodeClaims.
    NodeClaims,
    /// Watch Nodes.
    Nodes,
    /// Watch Events of Karpenter.
    Events,
    /// Watch reports.
    Reports,
    /// Read pools and classes.
    Parents,
    /// Write reports.
    WriteReports,
    /// Write conditions.
    WriteConditions,
    /// Write Events.
    WriteEvents,
    /// Read certificate requests.
    CertificateRequests,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NodeClaims,
        Self::Nodes,
        Self::Events,
        Self::Reports,
        Self::Parents,
        Self::WriteReports,
        Self::WriteConditions,
        Self::WriteEvents,
        Self::CertificateRequests,
    ];

    /// A word for a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeClaims => "nodeclaims",
            Self::Nodes => "nodes",
            Self::Events => "events",
            Self::Reports => "reports",
            Self::Parents => "parents",
            Self::WriteReports => "write-reports",
            Self::WriteConditions => "write-conditions",
            Self::WriteEvents => "write-events",
            Self::CertificateRequests => "certificate-requests",
        }
    }

    /// Without it nothing useful is done.
    fn is_vital(self) -> bool {
        match self {
            Self::NodeClaims
            | Self::Nodes
            | Self::Reports
            | Self::WriteReports
            | Self::WriteConditions => true,
            Self::Events | Self::Parents | Self::WriteEvents | Self::CertificateRequests => false,
        }
    }
}

/// What is wrong, shared by everybody who notices.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<Troubles>>);

#[derive(Debug, Default)]
struct Troubles {
    rights: BTreeMap<Right, String>,
    azure: Option<String>,
    waiting: BTreeMap<&'static str, String>,
    missing: Vec<Needed>,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, Troubles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something worked that needs this right.
    pub fn may(&self, right: Right) {
        if self.lock().rights.remove(&right).is_some() {
            info!(what = right.name(), "works again");
        }
    }

    /// Something failed that needs this right.
    pub fn failed(&self, right: Right, error: &kube::Error) {
        let text = redact(&advice(error)).text.into_string();
        let mut troubles = self.lock();
        if troubles.rights.get(&right) != Some(&text) {
            warn!(what = right.name(), error = %text, "cannot go on with this; trying again");
            troubles.rights.insert(right, text);
        }
    }

    /// These rights are missing.
    pub fn lacks(&self, missing: Vec<Needed>) {
        let mut troubles = self.lock();
        if troubles.missing != missing {
            let words: Vec<String> = missing.iter().map(Needed::words).collect();
            if words.is_empty() {
                info!("all rights are there");
            } else {
                warn!(
                    missing = words.join(", "),
                    "rights are missing; the chart's roles grant them"
                );
            }
            troubles.missing = missing;
        }
    }

    /// Azure answered, or did not.
    pub fn azure(&self, trouble: Option<String>) {
        let trouble = trouble.map(|text| redact(&text).text.into_string());
        let mut troubles = self.lock();
        if troubles.azure != trouble {
            if let Some(text) = &trouble {
                warn!(error = %text, "Azure cannot be asked; trying again");
            } else {
                info!("Azure can be asked again");
            }
            troubles.azure = trouble;
        }
    }

    /// Something is waited for, such as the definition of a kind.
    pub fn waits(&self, what: &'static str, why: Option<&str>) {
        let mut troubles = self.lock();
        match why {
            Some(why) => {
                if troubles.waiting.get(what).map(String::as_str) != Some(why) {
                    info!(what, why, "waiting");
                    troubles.waiting.insert(what, why.to_owned());
                }
            }
            None => {
                troubles.waiting.remove(what);
            }
        }
    }

    /// Why we are not ready, if we are not.
    pub fn not_ready(&self) -> Vec<String> {
        let troubles = self.lock();
        let vital = troubles.rights.iter().filter(|(right, _)| right.is_vital());
        let failed = vital.map(|(right, text)| format!("{}: {text}", right.name()));
        let missing = troubles.missing.iter().filter(|needed| needed.vital);
        failed.chain(missing.map(|needed| format!("may not {}", needed.words()))).collect()
    }

    /// Everything that is wrong, by name.
    pub fn degraded(&self) -> Vec<String> {
        let troubles = self.lock();
        let mut names: Vec<String> =
            troubles.rights.keys().map(|right| right.name().to_owned()).collect();
        names.extend(troubles.azure.as_ref().map(|_| "azure".to_owned()));
        names.extend((!troubles.missing.is_empty()).then(|| "rights".to_owned()));
        names
    }

    /// What is waited for.
    pub fn waiting(&self) -> Vec<String> {
        self.lock().waiting.values().cloned().collect()
    }
}

/// An error of the API server in one line; what is missing, where a right is.
pub fn advice(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => forbidden(status),
        _ => error.to_string(),
    }
}

/// The API server's own words name verb, resource and group.
fn forbidden(status: &Status) -> String {
    format!("forbidden: {}", status.message)
}
