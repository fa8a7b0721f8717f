//! Events about what is made for claims and classes.

use bringup_objects::condition::cut;
use bringup_objects::{MANAGER, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use tracing::warn;

use crate::faces::events::NAMESPACE;

/// The longest note that an API server takes.
const LONGEST_NOTE: usize = 1024;

/// Makes Events.
#[derive(Clone)]
pub(super) struct Recorder {
    events: Api<Event>,
    instance: String,
}

/// What is to be said.
pub(super) struct Saying<'a> {
    pub(super) warning: bool,
    pub(super) reason: &'a str,
    pub(super) action: &'a str,
    pub(super) note: &'a str,
    /// The same saying with the same mark is made once.
    pub(super) mark: &'a str,
}

impl Recorder {
    pub(super) fn new(client: Client, instance: &str) -> Self {
        Self { events: Api::namespaced(client, NAMESPACE), instance: cut(instance, 128) }
    }

    /// Says something about an object, once. That it could not be said keeps nobody from acting.
    pub(super) async fn say<K>(&self, about: &K, saying: &Saying<'_>, now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let (name, uid) = (about.name_any(), about.uid().unwrap_or_default());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(names::stable(&name, '.', &[&uid, saying.reason, saying.mark])),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(saying.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(saying.note, LONGEST_NOTE)),
            reason: Some(saying.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(name),
                uid: Some(uid),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(MANAGER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if saying.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        match self.events.create(&PostParams::default(), &event).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => warn!(reason = saying.reason, %error, "an Event could not be made"),
        }
    }
}
