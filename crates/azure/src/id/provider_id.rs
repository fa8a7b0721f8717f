//! The `providerID` of a Kubernetes Node or claim: a scheme, and the ID of the VM or scale set instance.

use std::fmt;
use std::str::FromStr;

use super::{IdError, InstanceId, ResourceId};

/// The system that created the VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `azure://`: AKS, Karpenter, Cluster API.
    Azure,
    /// `azure-flex://`: bringup.
    AzureFlex,
}

impl Scheme {
    const ALL: [Self; 2] = [Self::Azure, Self::AzureFlex];

    fn word(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::AzureFlex => "azure-flex",
        }
    }
}

/// Why a text is no provider ID on Azure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// The Node has no provider ID.
    #[error("the provider id is empty")]
    Empty,
    /// The text has no scheme.
    #[error("`{0}` has no scheme: expected azure:// or azure-flex:// before the resource id")]
    NoScheme(String),
    /// The scheme belongs to another cloud.
    #[error(
        "the scheme of `{id}` is `{scheme}`, which is not Azure's: expected azure or azure-flex"
    )]
    OtherScheme {
        /// The text.
        id: String,
        /// The scheme in the text.
        scheme: String,
    },
    /// The rest of the text is not the ID of a VM or scale set instance.
    #[error("the provider id `{id}` does not name a machine")]
    Id {
        /// The text.
        id: String,
        /// The problem with the ID.
        source: IdError,
    },
}

/// A provider ID in the notation of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId {
    /// The system that created the VM.
    pub scheme: Scheme,
    /// The VM or scale set instance.
    pub instance: InstanceId,
}

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(text: &str) -> Result<Self, ProviderIdError> {
        if text.is_empty() {
            return Err(ProviderIdError::Empty);
        }
        let (word, id) =
            text.split_once("://").ok_or_else(|| ProviderIdError::NoScheme(text.to_owned()))?;
        let scheme = Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.word().eq_ignore_ascii_case(word))
            .ok_or_else(|| ProviderIdError::OtherScheme {
                id: text.to_owned(),
                scheme: word.to_owned(),
            })?;
        let instance = id
            .parse::<ResourceId>()
            .and_then(|id| InstanceId::try_from(&id))
            .map_err(|source| ProviderIdError::Id { id: text.to_owned(), source })?;
        Ok(Self { scheme, instance })
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme.word(), self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: &str = "azure:///subscriptions/s/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachines/aks-default-x7k2p";

    #[test]
    fn case_39_machines_of_both_schemes_and_both_kinds_are_read_and_written_as_they_were() {
        let instance = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/12";
        for text in [VM, instance, &VM.replace("azure:", "azure-flex:")] {
            assert_eq!(text.parse::<ProviderId>().unwrap().to_string(), text);
        }
        assert_eq!(VM.to_uppercase().parse::<ProviderId>(), VM.parse());
        assert_ne!(VM.replace("azure:", "azure-flex:").parse::<ProviderId>(), VM.parse());
    }

    #[test]
    fn case_38_and_39_what_is_no_provider_id_of_ours_is_refused_with_the_reason() {
        let source = |error: &ProviderIdError| {
            std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
        };
        for (text, why, because) in [
            ("", "is empty", ""),
            ("vm-a", "has no scheme", ""),
            ("aws:///eu-west-1a/i-0123", "scheme of `aws:///eu-west-1a/i-0123` is `aws`", ""),
            ("azure://", "does not name a machine", "expected `subscriptions`"),
            ("azure://subscriptions/s", "does not name a machine", "expected `subscriptions`"),
            ("azure:///subscriptions/s/resourceGroups/g", "does not name", "expected `providers`"),
            (
                "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
                "does not name a machine",
                "id of a Microsoft.Compute/disks",
            ),
            (&format!("{VM}/"), "does not name a machine", "segment 9"),
        ] {
            let refused = text.parse::<ProviderId>().unwrap_err();
            assert!(refused.to_string().contains(why), "{text}: {refused}");
            assert!(source(&refused).contains(because), "{text}: {}", source(&refused));
        }
    }
}
