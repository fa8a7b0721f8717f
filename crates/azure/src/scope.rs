//! The subscriptions and resource groups that bringup may use.
//!
//! IDs of Azure resources come from objects that tenants can write. bringup refuses an ID outside the allowed
//! scopes before it sends any request.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::id::{Name, NameError};

/// A subscription, or one of its resource groups. Written as `SUBSCRIPTION` or `SUBSCRIPTION/GROUP`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    subscription: Name,
    resource_group: Option<Name>,
}

/// Why a text is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a scope: expected SUBSCRIPTION or SUBSCRIPTION/RESOURCE-GROUP")]
pub struct ScopeError {
    text: String,
    source: NameError,
}

impl Scope {
    /// One resource group.
    pub fn group(subscription: &Name, resource_group: &Name) -> Self {
        Self { subscription: subscription.clone(), resource_group: Some(resource_group.clone()) }
    }

    fn allows(&self, subscription: &Name, resource_group: &Name) -> bool {
        self.subscription == *subscription
            && self.resource_group.as_ref().is_none_or(|group| group == resource_group)
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let wrong = |source| ScopeError { text: text.chars().take(300).collect(), source };
        let (subscription, group) = match text.split_once('/') {
            Some((subscription, group)) => (subscription, Some(group)),
            None => (text, None),
        };
        Ok(Self {
            subscription: subscription.parse().map_err(wrong)?,
            resource_group: group.map(str::parse).transpose().map_err(wrong)?,
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resource_group {
            Some(group) => write!(formatter, "{}/{group}", self.subscription),
            None => write!(formatter, "{}", self.subscription),
        }
    }
}

/// A set of scopes. An empty set allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// Whether a resource in this group may be used.
    pub fn allow(&self, subscription: &Name, resource_group: &Name) -> bool {
        self.0.iter().any(|scope| scope.allows(subscription, resource_group))
    }

    /// Whether the set is empty, and so allows nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a scope.
    pub fn insert(&mut self, scope: Scope) {
        self.0.insert(scope);
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_subscription_allows_all_its_groups_and_a_group_only_itself() {
        let scopes: Scopes =
            ["sub-a", "sub-b/nodes"].map(|text| text.parse().unwrap()).into_iter().collect();
        assert!(scopes.allow(&name("SUB-A"), &name("anything")));
        assert!(scopes.allow(&name("sub-b"), &name("Nodes")));
        assert!(!scopes.allow(&name("sub-b"), &name("nodes-2")));
        assert!(!scopes.allow(&name("sub-c"), &name("nodes")));
        assert!(!Scopes::default().allow(&name("sub-a"), &name("nodes")));
    }

    #[test]
    fn what_is_not_a_scope_is_refused() {
        for text in ["", "/", "sub/", "/group", "sub/group/more", "sub/.."] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
        assert_eq!("sub/group".parse::<Scope>().unwrap().to_string(), "sub/group");
    }
}
