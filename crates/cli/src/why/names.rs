//! Finds the known objects with a name or a prefix.

use bringup_objects::BootstrapReport;
use kube::ResourceExt as _;

use crate::cluster::ClaimRow;
use crate::vm;

/// The least similarity of a suggested name, from 0 to 1.
const ALIKE: f64 = 0.8;

/// The kind `Machine` of Cluster API.
pub(crate) const MACHINE: &str = "Machine";

/// An object that was meant to become a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) kind: String,
    /// `None` for kinds without namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Subject {
    pub(crate) fn claim(name: &str) -> Self {
        Self { kind: "NodeClaim".to_owned(), namespace: None, name: name.to_owned() }
    }

    pub(crate) fn machine(namespace: &str, name: &str) -> Self {
        let (kind, name) = (MACHINE.to_owned(), name.to_owned());
        Self { kind, namespace: Some(namespace.to_owned()), name }
    }

    /// A Node without any other known object.
    pub(crate) fn node(name: &str) -> Self {
        Self { kind: "Node".to_owned(), namespace: None, name: name.to_owned() }
    }

    /// The object that a report describes.
    pub(crate) fn of_report(report: &BootstrapReport) -> Self {
        let target = &report.spec.target_ref;
        if target.kind == "NodeClaim" {
            return Self::claim(&target.name);
        }
        // The report about a namespaced object is in the same namespace.
        Self { kind: target.kind.clone(), namespace: report.namespace(), name: target.name.clone() }
    }

    /// The name for users, such as `NodeClaim default-x7k2p` or `Machine team-a/md-0-abc`.
    pub(crate) fn words(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}

/// A subject and its names: its own, and those of its Node, its VM and its report.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) subject: Subject,
    pub(crate) names: Vec<String>,
}

impl Entry {
    /// The names in a report.
    pub(crate) fn of_report(report: &BootstrapReport) -> Self {
        let subject = Subject::of_report(report);
        let spec = &report.spec;
        let vm = spec.provider_id.as_deref().and_then(vm::name);
        let names = [Some(subject.name.clone()), spec.node_name.clone(), vm];
        let names = names.into_iter().flatten().chain([report.name_any()]).collect();
        Self { subject, names }
    }

    /// The names of a NodeClaim. If the VM is not known, the entry contains the name that Karpenter's Azure
    /// provider would choose.
    pub(crate) fn of_claim(claim: &ClaimRow) -> Self {
        let vm = claim.vm.clone().unwrap_or_else(|| format!("aks-{}", claim.name));
        let names = [Some(claim.name.clone()), claim.node.clone(), Some(vm)];
        Self { subject: Subject::claim(&claim.name), names: names.into_iter().flatten().collect() }
    }
}

/// The possible results for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    Nothing,
    One(Subject),
    Several(Vec<Subject>),
}

/// The subject with this name; else the subject with this prefix.
pub(crate) fn meaning(wanted: &str, entries: &[Entry]) -> Meaning {
    match exactly(wanted, entries) {
        Meaning::Nothing => choose(entries, |name| starts(name, wanted)),
        found => found,
    }
}

/// The subject with exactly this name.
pub(crate) fn exactly(wanted: &str, entries: &[Entry]) -> Meaning {
    choose(entries, |name| name.eq_ignore_ascii_case(wanted))
}

/// Whether a name has this prefix, ignoring upper and lower case, as Azure does.
pub(crate) fn starts(name: &str, beginning: &str) -> bool {
    name.get(..beginning.len()).is_some_and(|part| part.eq_ignore_ascii_case(beginning))
}

fn choose(entries: &[Entry], fits: impl Fn(&str) -> bool) -> Meaning {
    let fitting = entries.iter().filter(|entry| entry.names.iter().any(|name| fits(name)));
    let mut subjects: Vec<Subject> = fitting.map(|entry| entry.subject.clone()).collect();
    subjects.sort();
    subjects.dedup();
    match subjects.len() {
        0 => Meaning::Nothing,
        1 => Meaning::One(subjects.remove(0)),
        _ => Meaning::Several(subjects),
    }
}

/// The most similar name, for a name that does not exist.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase()), name))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(left.1)))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use bringup_objects::report::ReportSpec;

    use super::*;

    fn claim(name: &str) -> Entry {
        Entry::of_claim(&ClaimRow { name: name.to_owned(), ..ClaimRow::default() })
    }

    fn report(target: &str, digits: &str) -> Entry {
        let mut report = BootstrapReport::new(&format!("{target}-{digits}"), ReportSpec::default());
        report.spec.target_ref.kind = "NodeClaim".to_owned();
        report.spec.target_ref.name = target.to_owned();
        report.spec.node_name = Some(format!("node-{target}"));
        report.spec.provider_id = Some(format!(
            "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/VM-{target}"
        ));
        Entry::of_report(&report)
    }

    #[test]
    fn a_subject_is_found_by_itself_its_node_its_vm_and_its_report() {
        let known = [report("default-x7k2p", "0123456789"), claim("default-abcde")];
        let wanted = Meaning::One(Subject::claim("default-x7k2p"));
        for name in [
            "default-x7k2p",
            "DEFAULT-X7K2P",
            "node-default-x7k2p",
            "vm-default-x7k2p",
            "default-x7k2p-0123456789",
            "default-x",
            "VM-default-x7",
        ] {
            assert_eq!(meaning(name, &known), wanted, "{name}");
        }
        assert_eq!(meaning("aks-default-a", &known), Meaning::One(Subject::claim("default-abcde")));
        assert_eq!(meaning("efault", &known), Meaning::Nothing);
    }

    #[test]
    fn a_beginning_of_several_is_none_of_them_unless_it_is_a_whole_name() {
        let known = [claim("default-x"), claim("default-x7k2p"), report("default-x7k2p", "01")];
        let both = vec![Subject::claim("default-x"), Subject::claim("default-x7k2p")];
        assert_eq!(meaning("def", &known), Meaning::Several(both));
        assert_eq!(meaning("default-x", &known), Meaning::One(Subject::claim("default-x")));
    }

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest() {
        let names = ["default-x7k2p", "gpu-abcde"];
        assert_eq!(nearest("default-x7kp2", names.into_iter()), Some("default-x7k2p"));
        assert_eq!(nearest("zzz", names.into_iter()), None);
    }

    #[test]
    fn letters_of_any_kind_can_be_typed() {
        assert_eq!(meaning("失敗é", &[claim("default-x")]), Meaning::Nothing);
        assert_eq!(meaning("d", &[claim("é")]), Meaning::Nothing);
    }
}
