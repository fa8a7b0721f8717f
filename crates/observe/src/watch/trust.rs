//! Which reports bringup believes. Otherwise a tenant who may create reports in one namespace could make
//! bringup publish anything about any object, and delete that object.

use std::collections::HashSet;

use bringup_objects::MANAGER;
use bringup_objects::report::BootstrapReport;
use tracing::warn;

use crate::cluster::ReportKey;
use crate::profile::{Kind, Scope};

/// Field managers whose reports bringup believes: its own, and that of `clusterctl move`, which moves reports
/// to another cluster.
const WRITERS: [&str; 2] = [MANAGER, "clusterctl"];
/// The most foreign reports that are logged, each once.
const LOGGED: usize = 1000;

/// Why a report is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Kind,
    Namespace,
    Writer,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Self::Kind => "its target is neither a NodeClaim nor a Machine",
            Self::Namespace => "reports about NodeClaims are kept in the namespace of bringup",
            Self::Writer => "bringup did not write it",
        }
    }
}

/// Reports that bringup does not believe: ignored, logged once each, never changed and never deleted.
#[derive(Debug, Default)]
pub(super) struct Foreign(HashSet<ReportKey>);

impl Foreign {
    /// Whether bringup wrote a report, and the report is in the namespace where it belongs.
    pub(super) fn ours(&mut self, report: &BootstrapReport, namespace: &str) -> bool {
        let Some(reason) = refused(report, namespace) else { return true };
        let key = ReportKey::of(report);
        if self.0.len() < LOGGED && self.0.insert(key.clone()) {
            let ReportKey { namespace, name } = key;
            warn!(
                namespace,
                name,
                reason = reason.words(),
                "ignoring BootstrapReport that bringup did not write"
            );
        }
        false
    }
}

fn refused(report: &BootstrapReport, namespace: &str) -> Option<Reason> {
    let kind = report.spec.target_ref.kind.as_str();
    let is_at_home = report.metadata.namespace.as_deref() == Some(namespace);
    let mut managers = report.metadata.managed_fields.iter().flatten();
    let Some(kind) = Kind::named(kind) else { return Some(Reason::Kind) };
    if kind.profile().scope == Scope::Cluster && !is_at_home {
        Some(Reason::Namespace)
    } else if !managers
        .any(|entry| entry.manager.as_deref().is_some_and(|it| WRITERS.contains(&it)))
    {
        Some(Reason::Writer)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use bringup_objects::report::{ReportSpec, TargetReference};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

    use super::*;

    fn report(kind: &str, namespace: &str, manager: &str) -> BootstrapReport {
        let target_ref = TargetReference { kind: kind.to_owned(), ..TargetReference::default() };
        let mut report =
            BootstrapReport::new("r", ReportSpec { target_ref, ..ReportSpec::default() });
        report.metadata.namespace = Some(namespace.to_owned());
        report.metadata.managed_fields = Some(vec![ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            ..ManagedFieldsEntry::default()
        }]);
        report
    }

    #[test]
    fn a_report_counts_only_where_it_belongs_and_if_bringup_wrote_it() {
        let refused = |report: &BootstrapReport| refused(report, "bringup-system");
        assert_eq!(refused(&report("NodeClaim", "bringup-system", "bringup")), None);
        assert_eq!(refused(&report("Machine", "team-a", "bringup")), None);
        assert_eq!(refused(&report("Machine", "team-a", "clusterctl")), None);
        let of_tenant = report("NodeClaim", "team-a", "bringup");
        assert_eq!(refused(&of_tenant), Some(Reason::Namespace));
        let by_tenant = report("Machine", "team-a", "kubectl-create");
        assert_eq!(refused(&by_tenant), Some(Reason::Writer));
        assert_eq!(refused(&report("Node", "bringup-system", "bringup")), Some(Reason::Kind));
        let mut foreign = Foreign::default();
        assert!(!foreign.ours(&of_tenant, "bringup-system"));
        assert_eq!(foreign.0.len(), 1);
    }
}
