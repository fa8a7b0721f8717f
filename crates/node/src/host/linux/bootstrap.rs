//! Observes the bootstrap on Linux: has it begun, does it run, has it ended?

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::cloud_init::{NoStatus, Outcome, Status};
use super::systemd::{Doing, Unit};
use super::{Places, logs};
use crate::capi::aks;
use crate::capi::kubeadm;
use crate::capi::mark::Marks;
use crate::capi::settings::Watched;
use crate::capi::verdict::{Bootstrap, End, Mark};
use crate::host::linux::store;
use crate::host::paths::Root;

/// The shortest interval between queries to systemd for the watched unit.
const UNIT: Duration = Duration::from_millis(900);

/// The interval for cloud-final, which rarely adds anything to the files.
const FINAL: Duration = Duration::from_secs(5);

/// Observes the bootstrap, and caches the results of expensive queries.
#[derive(Debug)]
pub(crate) struct Observer {
    root: Root,
    places: Places,
    asked: Option<(Instant, Option<Unit>)>,
    kubeadm_log: Option<(SystemTime, u64, bool)>,
}

impl Observer {
    pub(crate) fn new(root: &Root, places: &Places) -> Self {
        Self { root: root.clone(), places: places.clone(), asked: None, kubeadm_log: None }
    }

    /// The state of the bootstrap.
    pub(crate) fn observe(&mut self, watched: &Watched, marks: &mut Marks) -> Bootstrap {
        let seen = match watched {
            Watched::CloudInit => self.cloud_init(marks),
            Watched::Unit(name) => self.unit(name),
            Watched::Aks => return aks::observe(&self.places, marks),
            Watched::CloudbaseInit => Bootstrap::NotSeen,
        };
        match seen {
            Bootstrap::NotSeen if self.has_begun(marks) => Bootstrap::Running,
            seen => seen,
        }
    }

    fn cloud_init(&mut self, marks: &mut Marks) -> Bootstrap {
        // cloud-init stores its result on the disk, and a link to it in memory.
        let result = &self.places.cloud_init_result;
        if matches!(marks.look(result), Mark::There(_)) || marks.has_link(result) {
            return Bootstrap::Ended(End::plain("cloud-init has ended"));
        }
        let last = self.ask("cloud-final.service", FINAL);
        if last.is_some_and(|unit| unit.doing() == Doing::Failed) {
            return Bootstrap::Ended(End::plain("cloud-final.service failed"));
        }
        match Status::load(&self.places.cloud_init_status) {
            Err(NoStatus::Unreadable) => {
                Bootstrap::Unknown("cloud-init's status.json cannot be read".to_owned())
            }
            Ok(_) | Err(NoStatus::Absent) => Bootstrap::NotSeen,
        }
    }

    fn unit(&mut self, name: &str) -> Bootstrap {
        let Some(unit) = self.ask(name, UNIT) else {
            return Bootstrap::Unknown(format!("systemd does not tell of {name}"));
        };
        match unit.doing() {
            Doing::Idle => Bootstrap::NotSeen,
            Doing::Running => Bootstrap::Running,
            Doing::Done => Bootstrap::Ended(End::plain(&format!("{name} has ended"))),
            Doing::Failed => {
                let how = format!("{name} failed: {}", unit.result());
                Bootstrap::Ended(End { how, commands_failed: true })
            }
        }
    }

    fn ask(&mut self, name: &str, every: Duration) -> Option<Unit> {
        let known = self.asked.as_ref().filter(|(when, _)| when.elapsed() < every);
        if let Some((_, unit)) = known {
            return unit.clone();
        }
        let unit = Unit::ask(&self.root, name);
        self.asked = Some((Instant::now(), unit.clone()));
        unit
    }

    /// The first signs of a bootstrap: its commands exist, or kubeadm runs, or kubeadm has written files.
    fn has_begun(&mut self, marks: &Marks) -> bool {
        self.places.runcmd.is_file() || self.kubeadm_wrote(marks) || kubeadm_runs(&self.root)
    }

    fn kubeadm_wrote(&mut self, marks: &Marks) -> bool {
        let path = &self.places.output_log;
        let Ok(data) = fs::metadata(path) else { return false };
        let (Ok(modified), length) = (data.modified(), data.len()) else { return false };
        if let Some((when, size, ran)) = self.kubeadm_log
            && (when, size) == (modified, length)
        {
            return ran;
        }
        let ran = marks.is_fresh(path)
            && store::tail(path, logs::TAIL).is_ok_and(|text| kubeadm::read(&text).ran);
        self.kubeadm_log = Some((modified, length, ran));
        ran
    }

    /// Whether the machine received user data, if known.
    pub(crate) fn delivered(&self) -> Option<bool> {
        let outcome = Outcome::load(&self.places.cloud_init_result);
        if outcome.is_some_and(|outcome| outcome.without_source()) {
            return Some(false);
        }
        let text = store::head(&self.places.user_data, 4096).ok()?;
        Some(!text.trim().is_empty())
    }

    /// The part of the report about cloud-init.
    pub(crate) fn cloud_init_report(&self) -> Value {
        let Ok(status) = Status::load(&self.places.cloud_init_status) else { return Value::Null };
        json!(status)
    }

    /// The part of the report about kubelet: whether it is active, and how often it was restarted.
    pub(crate) fn kubelet_unit(&self) -> (Option<bool>, Option<u32>) {
        let unit = Unit::ask(&self.root, "kubelet.service");
        let active = unit.as_ref().map(|unit| unit.active == "active");
        (active, unit.and_then(|unit| unit.restarts))
    }

    /// kubelet has credentials of its own, so the API server has accepted the node.
    pub(crate) fn has_kubelet_credentials(&self) -> bool {
        self.places.kubelet_settings.is_file()
    }

    /// The logs that may show the cause.
    pub(crate) fn logs(&self, watched: &Watched) -> Vec<bringup_diagnosis::Piece> {
        logs::collect(&self.root, &self.places, watched)
    }

    /// Logs that contain errors on every machine.
    pub(crate) fn deeper_logs(&self) -> Vec<bringup_diagnosis::Piece> {
        logs::deeper(&self.root)
    }
}

/// Whether kubeadm runs now.
fn kubeadm_runs(root: &Root) -> bool {
    let processes = fs::read_dir(root.at("/proc")).into_iter().flatten().flatten();
    let is_kubeadm =
        |folder: &Path| store::line(&folder.join("comm")).is_some_and(|name| name == "kubeadm");
    processes
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .any(|entry| is_kubeadm(&entry.path()))
}
