//! A claim, and observations of its VM.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use bringup_diagnosis::{Evidence, Piece, Source};
use bringup_objects::condition::Condition;
use bringup_objects::report::BootstrapReport;
use bringup_observe::observation::{Agent, Cse, Observation, Vm};
use bringup_observe::plan::Step;
use bringup_observe::profile::Kind;
use bringup_observe::schedule;
use bringup_observe::shape::Shape;
use bringup_observe::snapshot::{Signal, Snapshot};
use bringup_observe::subject::{Labels, Launch, Parent, Place, Subject};
use jiff::Timestamp;

pub(crate) const VM: &str =
    "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-a";

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub(crate) fn subject() -> Subject {
    Subject {
        profile: Kind::NodeClaim.profile(),
        shape: Shape::of_claims(),
        namespace: None,
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        resource_version: "1".to_owned(),
        generation: Some(1),
        created: at(0),
        deleting: None,
        is_control_plane: false,
        parent: Some(Parent {
            group: "karpenter.sh".to_owned(),
            kind: "NodePool".to_owned(),
            namespace: None,
            name: "default".to_owned(),
        }),
        launch: Launch::Accepted(at(2)),
        registered: None,
        place: Place::Known(VM.parse().unwrap()),
        flex_class: None,
        machine: None,
        node_name: None,
        image: None,
        labels: Labels::default(),
        conditions: Vec::new(),
        counted_from: Some(at(0)),
        allowed: schedule::FORCED,
        has_room: true,
        held: None,
        trouble: None,
        api_server: None,
        provider_failure: None,
        mirror: None,
    }
}

pub(crate) fn snapshot(
    subject: &Subject,
    observation: Option<&Observation>,
    report: Option<&BootstrapReport>,
    now: Timestamp,
) -> Snapshot {
    Snapshot {
        report: report.cloned().map(Arc::new),
        observation: observation.cloned().map(Arc::new),
        namespace: "bringup-system".to_owned(),
        was_pending: true,
        ..Snapshot::of(Arc::new(subject.clone()), now)
    }
}

pub(crate) fn said(seconds: i64, text: &str) -> Signal {
    Signal { stamped: at(seconds), heard: at(seconds), text: text.to_owned() }
}

pub(crate) fn failed_cse() -> Observation {
    let text = "timeout: failed to run command 'oras': No such file or directory";
    Observation {
        at: at(90),
        vm: Vm::Failed,
        agent: Agent::Ready,
        cse: Cse::Failed { at: Some(at(88)) },
        evidence: Evidence {
            pieces: vec![Piece::seen(Source::Extension, "extension cse", text)],
            ..Evidence::default()
        }
        .into(),
        ..Observation::default()
    }
}

pub(crate) fn report() -> BootstrapReport {
    let subject = subject();
    let seen = failed_cse();
    match snapshot(&subject, Some(&seen), None, at(90)).next_step() {
        Step::Publish(report) => *report,
        step => panic!("{step:?}"),
    }
}

pub(crate) fn bear(mut subject: Subject, conditions: &[Condition]) -> Subject {
    subject.conditions = conditions.to_vec();
    subject
}
