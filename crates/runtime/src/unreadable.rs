//! Objects that the API server accepts but bringup cannot parse: each is logged once, and not observed until
//! it can be parsed. Its last known state is out of date, so every write based on that state would fail.

use std::collections::HashSet;

use bringup_diagnosis::redaction::redact;
use bringup_objects::Readable;
use bringup_objects::condition::cut;
use bringup_objects::readable;
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;
use tracing::warn;

/// The most objects that are logged.
const LOGGED: usize = 1000;
/// The most bytes of the error that are logged.
const LONGEST: usize = 300;

/// An event of a watch.
pub enum Seen<K> {
    /// A list begins.
    Init,
    /// An object of the list.
    InitApply(K),
    /// An existing object, from a list or a change, cannot be parsed.
    Unread(Box<ObjectMeta>),
    /// The list is complete.
    InitDone,
    /// An object was created or has changed.
    Apply(K),
    /// An object was deleted.
    Delete(K),
    /// An object was deleted, and its last state cannot be parsed.
    DeleteUnread(Box<ObjectMeta>),
}

/// The objects of one watch that cannot be parsed.
#[derive(Debug, Default)]
pub struct Unreadable(HashSet<(Option<String>, Option<String>)>);

impl Unreadable {
    /// Converts an event of a watch.
    pub fn pass<K>(&mut self, kind: &str, event: Event<Readable<K>>) -> Seen<K> {
        match event {
            Event::Init => Seen::Init,
            Event::InitDone => Seen::InitDone,
            Event::InitApply(object) => {
                self.read(kind, object).map_or_else(Seen::Unread, Seen::InitApply)
            }
            Event::Apply(object) => self.read(kind, object).map_or_else(Seen::Unread, Seen::Apply),
            Event::Delete(object) => {
                self.read(kind, object).map_or_else(Seen::DeleteUnread, Seen::Delete)
            }
        }
    }

    /// Converts an event for callers that need only parsed objects.
    pub fn event<K>(&mut self, kind: &str, event: Event<Readable<K>>) -> Option<Event<K>> {
        match self.pass(kind, event) {
            Seen::Init => Some(Event::Init),
            Seen::InitApply(object) => Some(Event::InitApply(object)),
            Seen::InitDone => Some(Event::InitDone),
            Seen::Apply(object) => Some(Event::Apply(object)),
            Seen::Delete(object) => Some(Event::Delete(object)),
            Seen::Unread(_) | Seen::DeleteUnread(_) => None,
        }
    }

    fn read<K>(&mut self, kind: &str, object: Readable<K>) -> Result<K, Box<ObjectMeta>> {
        object.0.map_err(|unreadable| {
            let readable::Unreadable { metadata, error } = *unreadable;
            let ObjectMeta { namespace, name, .. } = &metadata;
            if self.0.len() < LOGGED && self.0.insert((namespace.clone(), name.clone())) {
                let error = redact(&cut(&error, LONGEST)).text.into_string();
                warn!(kind, namespace, name, error, "skipping object that cannot be parsed");
            }
            Box::new(metadata)
        })
    }
}
