//! Objects of which one may not be readable. The API server accepts times and numbers that we cannot read
//! (`2026-01-27T14:32:00+99:99`, the year 10000). Read as a list of their type, one such object would hide
//! all others.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object, or what is known of one that cannot be read.
#[derive(Debug, Clone)]
pub struct Readable<K>(pub Result<K, Box<Unreadable>>);

/// An object that cannot be read.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// Namespace, name, uid and version; nothing else.
    pub metadata: ObjectMeta,
    /// Why it cannot be read. It quotes the object.
    pub error: String,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let read = K::deserialize(&object).map_err(|error| {
            let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
            let metadata = ObjectMeta {
                namespace: text("namespace"),
                name: text("name"),
                uid: text("uid"),
                resource_version: text("resourceVersion"),
                ..ObjectMeta::default()
            };
            Box::new(Unreadable { metadata, error: error.to_string() })
        });
        Ok(Self(read))
    }
}

impl<K: Resource> Resource for Readable<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(resource: &K::DynamicType) -> Cow<'_, str> {
        K::kind(resource)
    }

    fn group(resource: &K::DynamicType) -> Cow<'_, str> {
        K::group(resource)
    }

    fn version(resource: &K::DynamicType) -> Cow<'_, str> {
        K::version(resource)
    }

    fn api_version(resource: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(resource)
    }

    fn plural(resource: &K::DynamicType) -> Cow<'_, str> {
        K::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(unreadable) => &unreadable.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(unreadable) => &mut unreadable.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectList;
    use serde_json::json;

    use super::*;
    use crate::NodeClaim;

    fn claim(name: &str, time: &str) -> Value {
        json!({
            "metadata": { "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "7" },
            "spec": {},
            "status": { "conditions": [{
                "type": "Launched", "status": "True", "reason": "Launched", "message": "",
                "lastTransitionTime": time,
            }] },
        })
    }

    #[test]
    fn one_object_that_cannot_be_read_hides_no_other() {
        let times = ["2026-01-27T14:32:00Z", "2026-01-27T14:32:00+99:99", "10000-01-01T00:00:00Z"];
        let items: Vec<Value> = times.iter().map(|time| claim(&time[..5], time)).collect();
        let list = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaimList",
            "metadata": { "resourceVersion": "9" }, "items": items,
        });
        let text = list.to_string();
        assert!(serde_json::from_str::<ObjectList<NodeClaim>>(&text).is_err());
        let read: ObjectList<Readable<NodeClaim>> = serde_json::from_str(&text).unwrap();
        let readable: Vec<bool> = read.items.iter().map(|one| one.0.is_ok()).collect();
        assert_eq!(readable, [true, false, false]);
        let metadata = read.items[2].meta();
        assert_eq!(metadata.uid.as_deref(), Some("uid-of-10000"));
        assert_eq!(metadata.resource_version.as_deref(), Some("7"));
    }
}
