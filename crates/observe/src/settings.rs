//! What can be chosen.

use std::path::PathBuf;

use bringup_azure::Scopes;
use bringup_diagnosis::Signatures;
use jiff::SignedDuration;

use crate::claims::{NodeClassKind, default_classes};
use crate::machines::DEADLINE;

/// How the controller is to behave.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where reports and the lease are kept.
    pub namespace: String,
    /// The identity of this replica.
    pub identity: String,
    /// Whose claims are looked after.
    pub classes: Vec<NodeClassKind>,
    /// How long a report is kept whose subject is gone.
    pub report_ttl: SignedDuration,
    /// How many reports of one parent are kept whose subjects are gone.
    pub reports_per_parent: usize,
    /// Whether Machines of Cluster API are looked after too.
    pub machines: bool,
    /// How long after its VM is there a Machine is judged.
    pub machine_deadline: SignedDuration,
    /// Only Machines of this namespace are looked after; none: of all.
    pub only_namespace: Option<String>,
    /// The subscriptions and resource groups that may be read, beside those of the cluster's Nodes.
    pub scopes: Scopes,
    /// Nothing is really written.
    pub dry_run: bool,
    /// Lines that only the operator knows, and what they mean.
    pub signatures: Signatures,
    /// The file with the token that readers of metrics have to send; none: they need no token.
    pub metrics_token_file: Option<PathBuf>,
}

impl Settings {
    /// The defaults, for a namespace and an identity.
    pub fn new(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            classes: default_classes(),
            report_ttl: SignedDuration::from_hours(7 * 24),
            reports_per_parent: 20,
            machines: false,
            machine_deadline: DEADLINE,
            only_namespace: None,
            scopes: Scopes::default(),
            dry_run: false,
            signatures: Signatures::default(),
            metrics_token_file: None,
        }
    }
}
