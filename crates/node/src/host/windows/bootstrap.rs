//! Observes the bootstrap on Windows: has it begun, does it run, has it ended?

use serde_json::Value;

use super::api::{self, Service};
use super::{Places, logs};
use crate::capi::aks;
use crate::capi::cloudbase::Stage;
use crate::capi::mark::Marks;
use crate::capi::settings::Watched;
use crate::capi::verdict::{Bootstrap, End};
use crate::host::paths::Root;

/// Observes the bootstrap.
#[derive(Debug)]
pub(crate) struct Observer {
    root: Root,
    places: Places,
}

impl Observer {
    pub(crate) fn new(root: &Root, places: &Places) -> Self {
        Self { root: root.clone(), places: places.clone() }
    }

    /// The state of the bootstrap.
    pub(crate) fn observe(&mut self, watched: &Watched, marks: &mut Marks) -> Bootstrap {
        let seen = match watched {
            Watched::Aks => return aks::observe(&self.places, marks),
            Watched::CloudbaseInit => self.cloudbase_init(marks),
            Watched::CloudInit | Watched::Unit(_) => Bootstrap::NotSeen,
        };
        match seen {
            Bootstrap::NotSeen if self.asks_system() && api::runs("kubeadm.exe") => {
                Bootstrap::Running
            }
            seen => seen,
        }
    }

    /// Under a root, services and processes of this machine are ignored.
    fn asks_system(&self) -> bool {
        self.root.directory().is_none()
    }

    fn cloudbase_init(&self, marks: &Marks) -> Bootstrap {
        let fresh = marks.is_fresh(&self.places.cloudbase_log);
        let log = if fresh { logs::cloudbase(&self.places) } else { String::new() };
        let service = self.asks_system().then(|| api::service("cloudbase-init")).flatten();
        let stage = Stage::read(&log);
        match (stage, service) {
            (Stage::Rebooting, _) => Bootstrap::Running,
            (Stage::Done, _) => Bootstrap::Ended(End::plain("cloudbase-init has ended")),
            (_, Some(Service::Stopped)) => {
                Bootstrap::Ended(End::plain("cloudbase-init has stopped"))
            }
            (Stage::Commands, _) => Bootstrap::Running,
            (Stage::Early, _) => Bootstrap::NotSeen,
        }
    }

    /// Whether the machine received user data, if known.
    pub(crate) fn delivered(&self) -> Option<bool> {
        self.places.user_data.metadata().ok().map(|data| data.len() > 0)
    }

    /// The part of the report about cloud-init, which does not exist on Windows.
    #[expect(clippy::unused_self, reason = "on Linux it looks")]
    pub(crate) fn cloud_init_report(&self) -> Value {
        Value::Null
    }

    /// The part of the report about kubelet: whether it is active, and how often it was restarted.
    pub(crate) fn kubelet_unit(&self) -> (Option<bool>, Option<u32>) {
        let service = self.asks_system().then(|| api::service("kubelet")).flatten();
        (service.map(|service| service == Service::Running), None)
    }

    /// kubelet has credentials of its own, so the API server has accepted the node.
    pub(crate) fn has_kubelet_credentials(&self) -> bool {
        self.places.kubelet_settings.is_file()
    }

    /// The logs that may show the cause.
    pub(crate) fn logs(&self, watched: &Watched) -> Vec<bringup_diagnosis::Piece> {
        logs::collect(&self.places, watched)
    }

    /// Logs that contain errors on every machine; none are known on Windows.
    #[expect(clippy::unused_self, reason = "on Linux it reads journals")]
    pub(crate) fn deeper_logs(&self) -> Vec<bringup_diagnosis::Piece> {
        Vec::new()
    }
}
