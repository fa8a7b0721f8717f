//! Objects that the API server accepts and we cannot read: logged once each, and not observed as long as they
//! cannot be read. What was known of one is out of date, so that every write to it would fail.

use std::collections::HashSet;

use bringup_diagnosis::redaction::redact;
use bringup_objects::Readable;
use bringup_objects::condition::cut;
use bringup_objects::readable;
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;
use tracing::warn;

/// How many are logged.
const LOGGED: usize = 1000;
/// How much of the reason is logged, in bytes.
const LONGEST: usize = 300;

/// What a watch tells.
pub enum Seen<K> {
    /// A list begins.
    Init,
    /// An object of the list.
    InitApply(K),
    /// An object, of a list or not, that cannot be read.
    Unread(Box<ObjectMeta>),
    /// The list is complete.
    InitDone,
    /// An object is new or has changed.
    Apply(K),
    /// An object is gone.
    Delete(K),
    /// An object is gone whose last state cannot be read.
    DeleteUnread(Box<ObjectMeta>),
}

/// The objects of one watch that cannot be read.
#[derive(Debug, Default)]
pub struct Unreadable(HashSet<(Option<String>, Option<String>)>);

impl Unreadable {
    /// What is seen.
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

    /// The same for callers that keep only what can be read.
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
