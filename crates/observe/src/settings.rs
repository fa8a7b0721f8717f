//! The observer's settings.

use std::path::PathBuf;

use bringup_azure::Scopes;
use bringup_diagnosis::Signatures;
use jiff::SignedDuration;

use crate::claims::{NodeClassKind, default_classes};
use crate::machines::DEADLINE;

/// The observer's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the lease and of reports about cluster-scoped subjects.
    pub namespace: String,
    /// The identity of this replica.
    pub identity: String,
    /// The classes whose claims the controller handles.
    pub classes: Vec<NodeClassKind>,
    /// How long a report exists after its subject was deleted.
    pub report_ttl: SignedDuration,
    /// The most reports of one parent whose subjects were deleted.
    pub reports_per_parent: usize,
    /// Whether Machines of Cluster API are handled too.
    pub machines: bool,
    /// The time from the existence of a Machine's VM to the verdict.
    pub machine_deadline: SignedDuration,
    /// If set, only Machines in this namespace are handled.
    pub only_namespace: Option<String>,
    /// The subscriptions and resource groups that may be read, in addition to those of the cluster's Nodes.
    pub scopes: Scopes,
    /// Whether all writes are dry runs.
    pub dry_run: bool,
    /// The operator's own log lines, and the cause that each proves.
    pub signatures: Signatures,
    /// The file with the token that clients must send to read metrics; none: no token is needed.
    pub metrics_token_file: Option<PathBuf>,
}

impl Settings {
    /// The default settings for a namespace and an identity.
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
