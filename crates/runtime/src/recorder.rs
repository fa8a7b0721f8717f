//! Creates Events about cluster-scoped objects.

use bringup_objects::condition::cut;
use bringup_objects::{MANAGER, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use tracing::warn;

/// The namespace of Events about cluster-scoped objects.
pub const NAMESPACE: &str = "default";
/// The longest note that an API server accepts.
pub const LONGEST_NOTE: usize = 1024;

/// Creates Events.
#[derive(Clone)]
pub struct Recorder {
    events: Api<Event>,
    instance: String,
}

/// The content of an Event.
pub struct Announcement<'a> {
    /// Whether the Event is a warning.
    pub warning: bool,
    /// The reason of the Event.
    pub reason: &'a str,
    /// The action of the Event.
    pub action: &'a str,
    /// The text, cut to what the API server accepts.
    pub note: &'a str,
    /// Distinguishes announcements with the same reason: each mark gets one Event.
    pub mark: &'a str,
}

impl Recorder {
    /// A recorder that creates Events as this replica.
    pub fn new(client: Client, instance: &str) -> Self {
        Self { events: Api::namespaced(client, NAMESPACE), instance: cut(instance, 128) }
    }

    /// Creates an Event about an object, once. A failure is logged and otherwise ignored, because an Event
    /// must not prevent its caller from acting.
    pub async fn announce<K>(&self, about: &K, announcement: &Announcement<'_>, now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let (name, uid) = (about.name_any(), about.uid().unwrap_or_default());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(names::stable(
                    &name,
                    '.',
                    &[&uid, announcement.reason, announcement.mark],
                )),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(announcement.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(announcement.note, LONGEST_NOTE)),
            reason: Some(announcement.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(name),
                uid: Some(uid),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(MANAGER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if announcement.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        match self.events.create(&PostParams::default(), &event).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => warn!(reason = announcement.reason, %error, "cannot create Event"),
        }
    }
}
