//! All code that reads a stored report, for the property test in `hostile.rs` and for the fuzzer.

use bringup_objects::condition::LONGEST_MESSAGE;
use bringup_objects::report::BootstrapReport;
use bringup_observe::cluster::{Cluster, Key};
use bringup_observe::log;
use bringup_observe::observation::Observation;
use bringup_observe::outputs::{conditions, events, report as reports};
use bringup_observe::plan::Step;
use bringup_observe::profile::Kind;
use bringup_observe::subject::{Launch, Subject};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;

use crate::claim::{at, failed_cse, snapshot, subject};

/// The most bytes by which a report may grow.
const GROWTH: usize = 64 * 1024;
/// The longest note and the longest name that an API server accepts.
const LONGEST_NOTE: usize = 1024;
const LONGEST_NAME: usize = 253;

fn size(report: &BootstrapReport) -> usize {
    serde_json::to_string(report).map_or(0, |text| text.len())
}

/// The subjects that a report can be about: a claim, a Machine, a claim that Azure refused, a claim whose
/// Node joined.
fn subjects(uid: &str) -> [Subject; 4] {
    let claim = Subject { uid: uid.to_owned(), ..subject() };
    let namespace = Some("team-a".to_owned());
    let refused = Launch::Refused { at: at(1), message: "no".to_owned() };
    [
        Subject { profile: Kind::Machine.profile(), namespace, ..claim.clone() },
        Subject { launch: refused, ..claim.clone() },
        Subject { registered: Some(at(80)), ..claim.clone() },
        claim,
    ]
}

fn check_event(event: Option<Event>) {
    let Some(event) = event else { return };
    assert!(event.note.is_none_or(|note| note.len() <= LONGEST_NOTE));
    let name = event.metadata.name.unwrap_or_default();
    assert!(!name.is_empty() && name.len() <= LONGEST_NAME, "{name}");
}

/// Passes a report to all code that reads reports. No code may panic, and all outputs must be bounded.
pub(crate) fn read_everywhere(stored: &BootstrapReport) {
    let mut stored = stored.clone();
    // Only the API server writes these fields, and it accepts no longer values.
    let metadata = &mut stored.metadata;
    for name in metadata.name.iter_mut().chain(&mut metadata.namespace) {
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
    }
    let stored = &stored;
    let most = size(stored) + GROWTH;
    let cluster = Cluster::default();
    let keys = cluster.report_seen(stored.clone());
    // The report with its times as they are, and with bounded times.
    let seen: Vec<_> = keys
        .iter()
        .filter_map(|key| match key {
            Key::Report(key) => cluster.report(key),
            Key::Subject(_) | Key::Sweep => None,
        })
        .collect();
    assert_eq!(seen.len(), 1);
    for report in [stored, seen[0].as_ref()] {
        log::verdict(report);
        let _ = (report.phase(), report.cause(), report.is_announced(), report.is_of_refusal());
        let _ = (report.finished_at(), events::shared(report));
        for now in [Timestamp::MIN, at(90), at(100_000), Timestamp::MAX] {
            check_event(events::on_target(report, "test-0", now));
            check_event(events::on_parent(report, "uid", "test-0", now));
            let marked = reports::announced(report, now);
            assert!(marked.announcement().is_none() || marked.is_announced());
            assert!(size(&marked) <= most);
            for subject in subjects(&report.spec.target_ref.uid) {
                decide(&cluster, &subject, report, now, most);
            }
        }
        assert!(size(&reports::given_up(report, &Observation::default())) <= most);
    }
}

fn decide(
    cluster: &Cluster,
    subject: &Subject,
    report: &BootstrapReport,
    now: Timestamp,
    most: usize,
) {
    cluster.seen(subject.clone());
    let _ = (cluster.report_of(subject), cluster.alike(subject));
    let failed = failed_cse();
    for observation in [None, Some(&failed)] {
        for departed in [false, true] {
            let mut snapshot = snapshot(subject, observation, Some(report), now);
            snapshot.departed = departed;
            if let Step::Publish(report) | Step::Revise(report) = snapshot.next_step() {
                assert!(size(&report) <= most, "a report of {} bytes", size(&report));
            }
        }
        for is_up in [false, true] {
            let wanted = conditions::desired(subject, observation, Some(report), is_up, now);
            assert!(wanted.len() <= report.status.as_ref().map_or(0, |it| it.conditions.len()) + 3);
            for held in wanted {
                assert!(held.message.len() <= LONGEST_MESSAGE, "{} bytes", held.message.len());
            }
        }
    }
}
