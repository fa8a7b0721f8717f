//! Finds the object for a name: first by complete names, which cost one request each, and with long lists
//! only if that finds nothing.

use bringup_objects::{BootstrapReport, Node, NodeClaim};

use super::case::Case;
use super::living::{Living, Object};
use super::machines;
use super::names::{Entry, MACHINE, Meaning, Subject, exactly, meaning, nearest};
use super::typed::Typed;
use crate::cluster::{Cluster, Pools, Unseen};
use crate::failure::{Exit, Failure};
use crate::{safe, vm};

/// The largest number of names in the list for an ambiguous name.
const MOST_NAMES: usize = 20;

/// The object that was found, and all reports for comparison.
pub(crate) struct Found {
    pub(crate) case: Case,
    pub(crate) reports: Vec<BootstrapReport>,
}

/// Finds the object for a name.
pub(crate) async fn find(cluster: &Cluster, typed: &str) -> Result<Found, Failure> {
    let (wanted, provided) = match Typed::of(typed) {
        Typed::Any(name) => return find_any(cluster, name).await,
        Typed::Machine(name) => (name, None),
        Typed::Provided(kind, name) => (name, Some(kind)),
    };
    machines::find(cluster, wanted, provided).await
}

async fn find_any(cluster: &Cluster, wanted: String) -> Result<Found, Failure> {
    let mut search = Search::new(cluster, wanted)?;
    let name = search.wanted.as_str();
    let (claim, node, reports) =
        tokio::join!(get_claim(cluster, name), get_node(cluster, name), cluster.reports());
    let claim = search.noted(claim)?.flatten();
    let node = search.noted(node)?.flatten();
    let reports = search.heard(reports)?;
    let (subject, living, node) = search.subject(claim, node, &reports).await?;
    search.finish(subject, living, node, reports)
}

/// Whether a Kubernetes object can have this name.
pub(super) fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

async fn get_claim(cluster: &Cluster, name: &str) -> Result<Option<NodeClaim>, Unseen> {
    if is_name(name) { cluster.claim(name).await } else { Ok(None) }
}

async fn get_node(cluster: &Cluster, name: &str) -> Result<Option<Node>, Unseen> {
    if is_name(name) { cluster.node(name).await } else { Ok(None) }
}

/// A search, and the resources that it could not read.
pub(super) struct Search<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) wanted: String,
    pub(super) notes: Vec<String>,
    pub(super) no_reports: Option<Unseen>,
    /// All names that the search has seen.
    names: Vec<String>,
}

type Objects = (Subject, Option<Living>, Option<Node>);

impl<'a> Search<'a> {
    pub(super) fn new(cluster: &'a Cluster, wanted: String) -> Result<Self, Failure> {
        if wanted.is_empty() {
            return Err(Failure::usage("the name is empty"));
        }
        Ok(Self { cluster, wanted, notes: Vec::new(), no_reports: None, names: Vec::new() })
    }

    /// The reports. Without them, an answer may still be possible.
    pub(super) fn heard(
        &mut self,
        reports: Result<Vec<BootstrapReport>, Unseen>,
    ) -> Result<Vec<BootstrapReport>, Failure> {
        match reports {
            Ok(reports) => Ok(reports),
            Err(Unseen::Failed(failure)) => Err(failure),
            Err(unseen) => {
                self.no_reports = Some(unseen);
                Ok(Vec::new())
            }
        }
    }

    /// The objects that were read. A missing permission is noted; an unreachable cluster ends the search.
    pub(super) fn noted<T>(&mut self, seen: Result<T, Unseen>) -> Result<Option<T>, Failure> {
        match seen {
            Ok(seen) => Ok(Some(seen)),
            Err(Unseen::Failed(failure)) => Err(failure),
            Err(unseen) => {
                let note = unseen.note().filter(|note| !self.notes.contains(note));
                self.notes.extend(note);
                Ok(None)
            }
        }
    }

    async fn subject(
        &mut self,
        claim: Option<NodeClaim>,
        node: Option<Node>,
        reports: &[BootstrapReport],
    ) -> Result<Objects, Failure> {
        if let Some(claim) = claim {
            return Ok((Subject::claim(&self.wanted), Some(claim.into()), node));
        }
        let mut entries: Vec<Entry> = reports.iter().map(Entry::of_report).collect();
        if let Some(node) = node {
            return self.owner(node, &entries).await;
        }
        if let Meaning::One(subject) = exactly(&self.wanted, &entries) {
            return self.with_object(subject, None).await;
        }
        let listed = self.cluster.claim_names().await;
        let rows = self.noted(listed)?.unwrap_or_default();
        entries.extend(rows.iter().map(Entry::of_claim));
        if let Some(subject) = self.one(&entries)? {
            return self.with_object(subject, None).await;
        }
        // The name may be a VM's, which only a provider ID contains, or a Node's, which may have no
        // NodeClaim.
        let (rows, nodes) =
            tokio::join!(self.cluster.claims(Pools::All, None), self.cluster.node_names());
        let rows = self.noted(rows)?.map(|listing| listing.items).unwrap_or_default();
        let nodes = self.noted(nodes)?.unwrap_or_default();
        let vms: Vec<Entry> = rows.iter().map(Entry::of_claim).collect();
        if let Some(subject) = self.one(&vms)? {
            return self.with_object(subject, None).await;
        }
        let nodes: Vec<Entry> = nodes
            .into_iter()
            .map(|name| Entry { subject: Subject::node(&name), names: vec![name] })
            .collect();
        if let Some(subject) = self.one(&nodes)? {
            let seen = get_node(self.cluster, &subject.name).await;
            let node = self.noted(seen)?.flatten();
            return match node {
                Some(node) => self.owner(node, &entries).await,
                None => Ok((subject, None, None)),
            };
        }
        self.names = entries.into_iter().chain(nodes).flat_map(|entry| entry.names).collect();
        Err(self.nothing())
    }

    /// The only subject with that name or prefix.
    pub(super) fn one(&self, entries: &[Entry]) -> Result<Option<Subject>, Failure> {
        match meaning(&self.wanted, entries) {
            Meaning::Nothing => Ok(None),
            Meaning::One(subject) => Ok(Some(subject)),
            Meaning::Several(subjects) => Err(several(&self.wanted, &subjects)),
        }
    }

    /// The object that a Node was created for: according to the owner reference, the name, or the provider
    /// ID.
    async fn owner(&mut self, node: Node, reports: &[Entry]) -> Result<Objects, Failure> {
        let owners = node.metadata.owner_references.iter().flatten();
        let owner = owners.into_iter().find(|owner| owner.kind == "NodeClaim");
        if let Some(subject) = owner.map(|owner| Subject::claim(&owner.name)) {
            return self.with_object(subject, Some(node)).await;
        }
        let called = node.metadata.name.clone().unwrap_or_default();
        let vm = node.spec.provider_id.as_deref().and_then(vm::name);
        let find = |entries: &[Entry]| {
            let names = [Some(called.as_str()), vm.as_deref()].into_iter().flatten();
            names.into_iter().find_map(|name| match exactly(name, entries) {
                Meaning::One(subject) => Some(subject),
                Meaning::Nothing | Meaning::Several(_) => None,
            })
        };
        let listed = self.cluster.claim_names().await;
        let rows = self.noted(listed)?.unwrap_or_default();
        let claims: Vec<Entry> = rows.iter().map(Entry::of_claim).collect();
        match find(&claims).or_else(|| find(reports)) {
            Some(subject) => self.with_object(subject, Some(node)).await,
            None => Ok((Subject::node(&called), None, Some(node))),
        }
    }

    pub(super) async fn with_object(
        &mut self,
        subject: Subject,
        node: Option<Node>,
    ) -> Result<Objects, Failure> {
        let living = match subject.kind.as_str() {
            "NodeClaim" => {
                let seen = get_claim(self.cluster, &subject.name).await;
                self.noted(seen)?.flatten().map(Living::from)
            }
            MACHINE => {
                let namespace = subject.namespace.as_deref();
                let seen = self.cluster.machines_called(namespace, &subject.name).await;
                self.noted(seen)?.unwrap_or_default().pop().map(Living::from)
            }
            _ => None,
        };
        Ok((subject, living, node))
    }

    pub(super) fn finish(
        self,
        subject: Subject,
        living: Option<Living>,
        node: Option<Node>,
        reports: Vec<BootstrapReport>,
    ) -> Result<Found, Failure> {
        // For a Machine, the command itself can observe more than whether it is watched.
        let is_told = living
            .as_ref()
            .is_some_and(|it| it.is_watched() || matches!(it.object, Object::Machine(_)));
        let own = reports.iter().filter(|report| Subject::of_report(report) == subject);
        let own = own.cloned().collect();
        let mut case = Case::new(subject, living, node, own, &self.wanted);
        case.notes = self.notes;
        match self.no_reports {
            // Without reports, the conditions still show whether the node came up.
            Some(unseen) if !is_told && case.exit() != Exit::Fine => {
                return Err(unseen.failure());
            }
            Some(Unseen::NotServed) => {
                case.notes.push("bringup is not installed in this cluster".to_owned());
            }
            Some(unseen) => case.notes.extend(unseen.note()),
            None => {}
        }
        Ok(Found { case, reports })
    }

    /// A sentence about where the search looked, and where it could not.
    pub(super) fn looked(&self, places: &str) -> String {
        let mut looked = format!("searched {places}");
        for note in &self.notes {
            looked.push_str("; ");
            looked.push_str(note);
        }
        looked
    }

    /// The error when no object has that name.
    fn nothing(&mut self) -> Failure {
        if let Some(unseen) = self.no_reports.take() {
            return unseen.failure();
        }
        let program = self.cluster.program.typed();
        let failure = Failure::usage(format!(
            "no NodeClaim, Node, VM or report has the name or prefix `{}`",
            safe::line(&self.wanted)
        ));
        let place = match &self.cluster.namespace {
            Some(namespace) => format!("the reports of namespace {namespace}"),
            None => "the reports of all namespaces".to_owned(),
        };
        let looked = self.looked(&format!("the NodeClaims, the Nodes and {place}"));
        let list = format!(
            "`{program} reports` lists all reports; for a Machine of Cluster API, use \
             machine/NAME"
        );
        let near = nearest(&self.wanted, self.names.iter().map(String::as_str));
        failure.detail(looked).hint(match near {
            Some(name) => format!("did you mean `{name}`? {list}"),
            None => list,
        })
    }
}

/// The error when a prefix matches several names.
pub(super) fn several(wanted: &str, subjects: &[Subject]) -> Failure {
    let shown = subjects.iter().take(MOST_NAMES).map(Subject::words).collect::<Vec<_>>().join(", ");
    let more = subjects.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Failure::usage(format!("`{}` matches {} objects", safe::line(wanted), subjects.len()))
        .detail(format!("{shown}{more}"))
        .hint("use a longer prefix or the whole name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_name_is_asked_for() {
        for wrong in ["", "..", "a?b", "a/b", "ä", "pool_3"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_name("default-x7k2p.1"));
    }
}
