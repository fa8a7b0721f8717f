//! Finds a Machine of Cluster API: by its name, by the name of the provider's object, by its report if the
//! Machine is deleted, and last by the prefix of its name.

use bringup_objects::cluster_api::Machine;

use super::find::{Found, Search, is_name, several};
use super::living::Living;
use super::names::{Entry, MACHINE, Meaning, Subject, exactly, nearest};
use crate::cluster::{Cluster, Unseen};
use crate::failure::Failure;
use crate::safe;

/// Finds a Machine. With a kind of the provider, the name is the name of a provider object.
pub(super) async fn find(
    cluster: &Cluster,
    wanted: String,
    provided: Option<&str>,
) -> Result<Found, Failure> {
    let mut search = Search::new(cluster, wanted)?;
    let namespace = cluster.namespace.as_deref();
    let (reports, machines) =
        tokio::join!(cluster.reports(), called(cluster, namespace, &search.wanted, provided));
    let reports = search.heard(reports)?;
    let is_served = !matches!(machines, Err(Unseen::NotServed));
    let mut machines = search.noted(machines)?.unwrap_or_default();
    if machines.len() > 1 {
        let subjects: Vec<Subject> = machines.iter().map(subject).collect();
        return Err(several(&search.wanted, &subjects).hint("select one with --namespace"));
    }
    if let Some(machine) = machines.pop() {
        return search.finish(subject(&machine), Some(Living::from(machine)), None, reports);
    }
    let mut entries: Vec<Entry> = reports
        .iter()
        .map(Entry::of_report)
        .filter(|entry| entry.subject.kind == MACHINE)
        .collect();
    let mut found = match exactly(&search.wanted, &entries) {
        Meaning::One(subject) => Some(subject),
        Meaning::Nothing | Meaning::Several(_) => None,
    };
    if found.is_none() && is_served {
        let listed = cluster.machine_names(namespace).await;
        let names = search.noted(listed)?.unwrap_or_default();
        entries.extend(names.into_iter().map(|(namespace, name)| Entry {
            subject: Subject::machine(&namespace, &name),
            names: vec![name],
        }));
    }
    if found.is_none() {
        found = search.one(&entries)?;
    }
    match found {
        Some(subject) => {
            let (subject, living, node) = search.with_object(subject, None).await?;
            search.finish(subject, living, node, reports)
        }
        None if is_served => Err(nothing(search, provided, &entries).await),
        None => Err(not_served()),
    }
}

fn subject(machine: &Machine) -> Subject {
    let meta = &machine.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    Subject::machine(&text(&meta.namespace), &text(&meta.name))
}

/// The Machines with this name, or the Machines whose provider object has this name.
async fn called(
    cluster: &Cluster,
    namespace: Option<&str>,
    name: &str,
    provided: Option<&str>,
) -> Result<Vec<Machine>, Unseen> {
    if !is_name(name) {
        return Ok(Vec::new());
    }
    let Some(kind) = provided else { return cluster.machines_called(namespace, name).await };
    let mut machines = Vec::new();
    for object in cluster.provided_called(kind, namespace, name).await? {
        let owners = object.metadata.owner_references.unwrap_or_default();
        let owner = owners.into_iter().find(|owner| owner.kind == MACHINE);
        // Before Cluster API sets the owner, the provider object usually has the name of its Machine.
        let owner = owner.map_or_else(|| name.to_owned(), |owner| owner.name);
        machines
            .extend(cluster.machines_called(object.metadata.namespace.as_deref(), &owner).await?);
    }
    machines.retain(|machine| {
        let reference = &machine.spec.infrastructure_ref;
        reference.kind == kind && reference.name == name
    });
    Ok(machines)
}

/// The error when no Machine has that name.
async fn nothing(mut search: Search<'_>, provided: Option<&str>, known: &[Entry]) -> Failure {
    let what = provided.map_or_else(|| MACHINE.to_owned(), |kind| format!("Machine of {kind}"));
    let name = safe::line(&search.wanted);
    let place = match &search.cluster.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "all namespaces".to_owned(),
    };
    match search.no_reports.take() {
        Some(Unseen::NotServed) => {
            search.notes.push("bringup is not installed in this cluster".to_owned());
        }
        Some(unseen) => search.notes.extend(unseen.note()),
        None => {}
    }
    let looked = search.looked(&format!("the Machines and the reports of {place}"));
    let failure = Failure::usage(match &search.cluster.namespace {
        Some(namespace) => {
            format!("found no {what} {name} and no report about it in namespace {namespace}")
        }
        None => format!("found no {what} {name} and no report about it in any namespace"),
    })
    .detail(looked);
    let elsewhere = match search.cluster.namespace {
        Some(_) => called(search.cluster, None, &search.wanted, provided).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let places: Vec<String> =
        elsewhere.into_iter().filter_map(|it| it.metadata.namespace).collect();
    let names = known.iter().flat_map(|entry| entry.names.iter().map(String::as_str));
    match (places.first(), nearest(&search.wanted, names)) {
        (Some(first), _) => failure.hint(format!(
            "a Machine of this name exists in namespace {}: use `--namespace {first}`",
            places.join(" and in ")
        )),
        (None, Some(near)) => failure.hint(format!("did you mean `{near}`?")),
        (None, None) => failure.hint(format!(
            "`kubectl get machines --all-namespaces` lists existing Machines, `{} reports --kind \
             machine` lists reports about Machines",
            search.cluster.program.typed()
        )),
    }
}

/// The error when the cluster serves no Machines.
fn not_served() -> Failure {
    Failure::error("Cluster API is not installed in this cluster")
        .detail("the API server does not serve machines.cluster.x-k8s.io, and no report is about a Machine")
        .hint("Machines exist in the management cluster: select it with --context")
}
