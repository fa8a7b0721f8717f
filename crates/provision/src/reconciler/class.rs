//! One class: its finalizer, its conditions, and when to check it again.

use std::collections::BTreeSet;

use bringup_flex::class::{Class, skew};
use bringup_flex::engine::Bootstrap;
use bringup_flex::time::later;
use bringup_objects::Readable;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::karpenter::NodeClaim;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tracing::warn;

use super::claims::is_of_our_class;
use super::classes::Findings;
use super::flex::Flex;
use super::kubernetes::pause;
use crate::joining;

impl<B: Bootstrap> Flex<B> {
    /// Reconciles a class. Returns when the class is due again.
    pub(super) async fn reconcile_class(&self, name: &str) -> Option<Timestamp> {
        match self.reconcile_known_class(name).await {
            Ok(next) => next,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => None,
            Err(error) => {
                warn!(class = name, %error, "cannot reconcile AzureFlexNodeClass");
                Some(later(self.clock.now(), pause(&error)))
            }
        }
    }

    async fn reconcile_known_class(&self, name: &str) -> Result<Option<Timestamp>, kube::Error> {
        let Some(class) = self.index().classes.get(name).cloned() else { return Ok(None) };
        let now = self.clock.now();
        if class.metadata.deletion_timestamp.is_some() {
            let users = self.users_of_class(name).await?;
            return self.classes.finalize(&class, &users, now).await;
        }
        if self.classes.add_finalizer(&class).await? {
            return Ok(None);
        }
        let failure = self.memory().class_failure(name);
        let mut findings = Findings { failure, ..Findings::default() };
        if let Ok(meant) = Class::of(&class.spec) {
            let cluster = joining::cluster_version(&self.client).await?;
            let version = meant.kubernetes_version.as_deref();
            findings.version = version.and_then(|version| skew(version, &cluster));
            findings.azure = Some(self.inquiries.class(&meant).await);
        }
        self.classes.write_status(&class, &findings, now).await.map(Some)
    }

    /// The names of the claims and machines that use a class. They are listed from the API server, because
    /// the watch may not have delivered a new one yet.
    async fn users_of_class(&self, class: &str) -> Result<Vec<String>, kube::Error> {
        let all = ListParams::default();
        let machines: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let machines = machines.list(&all).await?.items.into_iter();
        let machines = machines.filter(|machine| machine.spec.node_class == class);
        let claims: Api<Readable<NodeClaim>> = Api::all(self.client.clone());
        let claims = match claims.list(&all).await {
            Ok(found) => found.items,
            // Karpenter is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let claims = claims.iter().filter(|claim| match &claim.0 {
            Ok(claim) => is_of_our_class(claim) && claim.spec.node_class_ref.name == class,
            // An unreadable machine may use this class.
            Err(_) => true,
        });
        let names: BTreeSet<String> =
            claims.map(ResourceExt::name_any).chain(machines.map(|it| it.name_any())).collect();
        Ok(names.into_iter().collect())
    }
}
