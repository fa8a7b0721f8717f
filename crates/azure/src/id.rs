//! Resource IDs: parsed where they enter, compared without regard to case, and displayed as first seen.

mod name;
mod provider_id;
mod typed;

use std::fmt;
use std::str::FromStr;

pub use name::{Name, NameError};
pub use provider_id::{ProviderId, ProviderIdError, Scheme};
pub use typed::{InstanceId, MachineId, ScaleSetInstanceId, VirtualMachineId};

/// Why a text is no resource ID, or not the ID of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// A fixed segment is missing.
    #[error("expected `{expected}` as segment {at} of the resource id `{id}`, found {}", found.as_deref().map_or("its end".to_owned(), |found| format!("`{found}`")))]
    Expected {
        /// The text.
        id: String,
        /// The number of the segment, from 1.
        at: usize,
        /// The expected segment.
        expected: &'static str,
        /// The segment that was found.
        found: Option<String>,
    },
    /// A segment is not a valid name.
    #[error("segment {at} of the resource id `{id}` is not a name")]
    Name {
        /// The text.
        id: String,
        /// The number of the segment, from 1.
        at: usize,
        /// The problem with the name.
        source: NameError,
    },
    /// A type is not followed by a name.
    #[error("the resource id `{id}` ends with the type `{kind}` and no name")]
    NameMissing {
        /// The text.
        id: String,
        /// The type without a name.
        kind: String,
    },
    /// The ID of a resource of another type.
    #[error("`{id}` is the id of a {found}, not of a {expected}")]
    OtherType {
        /// The text.
        id: String,
        /// The type that was found.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
}

/// The ID of any resource in a resource group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    subscription: Name,
    resource_group: Name,
    namespace: Name,
    /// Pairs of type and name, outermost first; never empty.
    path: Vec<(Name, Name)>,
}

impl ResourceId {
    fn new(
        subscription: &Name,
        resource_group: &Name,
        namespace: &'static str,
        path: &[(&'static str, &Name)],
    ) -> Self {
        Self {
            subscription: subscription.clone(),
            resource_group: resource_group.clone(),
            namespace: Name::known(namespace),
            path: path.iter().map(|(kind, name)| (Name::known(kind), (*name).clone())).collect(),
        }
    }

    /// The resource's subscription.
    pub fn subscription(&self) -> &Name {
        &self.subscription
    }

    /// The resource group of the resource.
    pub fn resource_group(&self) -> &Name {
        &self.resource_group
    }

    /// The last name in the ID: that of the resource itself.
    pub fn name(&self) -> &Name {
        // Never empty: both constructors check that.
        self.path.last().map_or(&self.namespace, |(_, name)| name)
    }

    /// The full type, such as `Microsoft.Compute/virtualMachines`.
    pub fn kind(&self) -> String {
        let mut kind = self.namespace.to_string();
        for (part, _) in &self.path {
            kind.push('/');
            kind.push_str(part.as_str());
        }
        kind
    }

    /// The virtual machine that this resource is, or is part of.
    pub(crate) fn machine(&self) -> Option<Self> {
        let (kind, _) = self.path.first()?;
        (self.namespace == *typed::COMPUTE && *kind == *"virtualMachines")
            .then(|| Self { path: self.path[..1].to_vec(), ..self.clone() })
    }

    /// The ID as the path of a request.
    pub(crate) fn url_path(&self) -> String {
        let mut path = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{}",
            self.subscription.encoded(),
            self.resource_group.encoded(),
            self.namespace.encoded()
        );
        for (kind, name) in &self.path {
            path.push('/');
            path.push_str(&kind.encoded());
            path.push('/');
            path.push_str(&name.encoded());
        }
        path
    }

    /// The names in the ID, if the types are exactly these.
    fn names<const N: usize>(&self, namespace: &str, kinds: [&str; N]) -> Option<[&Name; N]> {
        let fits = self.namespace == *namespace
            && self.path.len() == N
            && self.path.iter().zip(kinds).all(|((kind, _), expected)| *kind == *expected);
        fits.then(|| std::array::from_fn(|at| &self.path[at].1))
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subscription, resource_group, namespace, path } = self;
        write!(
            formatter,
            "/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/{namespace}"
        )?;
        path.iter().try_for_each(|(kind, name)| write!(formatter, "/{kind}/{name}"))
    }
}

impl FromStr for ResourceId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut segments = Segments { id: text, rest: text.strip_prefix('/'), at: 0 };
        segments.word("subscriptions")?;
        let subscription = segments.name("a subscription")?;
        segments.word("resourceGroups")?;
        let resource_group = segments.name("a resource group")?;
        segments.word("providers")?;
        let namespace = segments.name("a provider")?;
        let mut path = Vec::new();
        loop {
            let kind = segments.name("a type")?;
            if segments.rest.is_none() {
                return Err(IdError::NameMissing { id: text.to_owned(), kind: kind.to_string() });
            }
            path.push((kind, segments.name("a name")?));
            if segments.rest.is_none() {
                return Ok(Self { subscription, resource_group, namespace, path });
            }
        }
    }
}

/// The segments of an ID that are not parsed yet.
struct Segments<'a> {
    id: &'a str,
    rest: Option<&'a str>,
    at: usize,
}

impl<'a> Segments<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        let rest = self.rest?;
        let (segment, rest) = match rest.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(segment)
    }

    fn expected(&self, expected: &'static str, found: Option<&str>) -> IdError {
        let found = found.map(str::to_owned);
        IdError::Expected { id: self.id.to_owned(), at: self.at, expected, found }
    }

    fn word(&mut self, expected: &'static str) -> Result<(), IdError> {
        match self.next() {
            Some(found) if found.eq_ignore_ascii_case(expected) => Ok(()),
            found => Err(self.expected(expected, found)),
        }
    }

    fn name(&mut self, expected: &'static str) -> Result<Name, IdError> {
        let Some(found) = self.next() else {
            return Err(self.expected(expected, None));
        };
        found.parse().map_err(|source| IdError::Name {
            id: self.id.to_owned(),
            at: self.at,
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: &str =
        "/subscriptions/s-1/resourceGroups/MC_rg/providers/Microsoft.Compute/virtualMachines/vm-a";

    #[test]
    fn an_id_is_shown_as_first_seen_and_compared_without_regard_to_case() {
        let id: ResourceId = VM.parse().unwrap();
        assert_eq!(id.to_string(), VM);
        assert_eq!(id, VM.to_uppercase().parse().unwrap());
        assert_eq!(id.kind(), "Microsoft.Compute/virtualMachines");
        assert_eq!(id.name().as_str(), "vm-a");
    }

    #[test]
    fn equal_ids_hash_alike() {
        let ids: std::collections::HashSet<ResourceId> =
            [VM, &VM.to_lowercase(), &VM.to_uppercase()]
                .iter()
                .map(|id| id.parse().unwrap())
                .collect();
        assert_eq!(ids.len(), 1);
    }

    #[test]
    fn what_is_no_id_is_refused_with_the_place() {
        for (text, why) in [
            ("", "expected `subscriptions` as segment 1"),
            ("subscriptions/s", "expected `subscriptions` as segment 1"),
            ("/subscriptions", "expected `a subscription` as segment 2"),
            ("/subscriptions//resourceGroups/g", "segment 2"),
            ("/subscriptions/s/groups/g", "expected `resourceGroups` as segment 3"),
            ("/subscriptions/s/resourceGroups/g", "expected `providers` as segment 5"),
            ("/subscriptions/s/resourceGroups/../providers/P/t/n", "segment 4"),
            ("/subscriptions/s/resourceGroups/g/providers/P", "expected `a type` as segment 7"),
            ("/subscriptions/s/resourceGroups/g/providers/P/t", "ends with the type `t`"),
            ("/subscriptions/s/resourceGroups/g/providers/P/t/n/", "segment 9"),
        ] {
            let refused = text.parse::<ResourceId>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn names_are_encoded_in_paths() {
        let id: ResourceId =
            "/subscriptions/s/resourceGroups/a b(c)/providers/P/t/x?y#z%2f".parse().unwrap();
        assert_eq!(
            id.url_path(),
            "/subscriptions/s/resourceGroups/a%20b(c)/providers/P/t/x%3Fy%23z%252f"
        );
    }
}
