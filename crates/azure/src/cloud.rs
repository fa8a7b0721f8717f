//! The Azure clouds: the endpoint of the resource manager, the authority that issues tokens, and the scope of
//! the tokens.

use std::fmt;
use std::str::FromStr;

use azure_core::http::Url;

/// The clouds that Microsoft operates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cloud {
    /// The public Azure cloud.
    #[default]
    Public,
    /// Azure in China, operated by 21Vianet.
    China,
    /// Azure for the US government.
    UsGovernment,
}

/// The name of no known cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an Azure cloud: expected public (AzureCloud, AzurePublicCloud), \
     china (AzureChinaCloud), or usgovernment (usgov, AzureUSGovernment, AzureUSGovernmentCloud)"
)]
pub struct UnknownCloud(String);

impl FromStr for Cloud {
    type Err = UnknownCloud;

    /// Accepts the names of the Azure CLI, of the Go libraries, and short ones, in any case.
    fn from_str(name: &str) -> Result<Self, UnknownCloud> {
        match name.trim().to_ascii_lowercase().as_str() {
            "public" | "azure" | "azurecloud" | "azurepublic" | "azurepubliccloud" => {
                Ok(Self::Public)
            }
            "china" | "azurechina" | "azurechinacloud" => Ok(Self::China),
            "usgov"
            | "usgovernment"
            | "azureusgovernment"
            | "azureusgovernmentcloud"
            | "azuregovernment" => Ok(Self::UsGovernment),
            _ => Err(UnknownCloud(name.to_owned())),
        }
    }
}

impl fmt::Display for Cloud {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Public => "public",
            Self::China => "china",
            Self::UsGovernment => "usgovernment",
        })
    }
}

impl Cloud {
    /// The endpoint of this cloud.
    pub fn endpoint(self) -> Endpoint {
        let (management, authority, storage): (_, _, &[&str]) = match self {
            Self::Public => (
                "https://management.azure.com",
                "https://login.microsoftonline.com",
                &["blob.core.windows.net", "blob.storage.azure.net"],
            ),
            Self::China => (
                "https://management.chinacloudapi.cn",
                "https://login.chinacloudapi.cn",
                &["blob.core.chinacloudapi.cn"],
            ),
            Self::UsGovernment => (
                "https://management.usgovcloudapi.net",
                "https://login.microsoftonline.us",
                &["blob.core.usgovcloudapi.net"],
            ),
        };
        let parse = |address: &str| Url::parse(address).expect("the addresses above are valid");
        Endpoint {
            management: parse(management),
            authority: parse(authority),
            scope: format!("{management}/.default"),
            storage: storage.iter().map(|&suffix| suffix.to_owned()).collect(),
        }
    }
}

/// Why an address cannot be an endpoint of Azure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text is not a URL.
    #[error("`{address}` is not an address: expected something like https://management.azure.com")]
    NotAnAddress {
        /// The text.
        address: String,
    },
    /// The URL is not HTTPS: tokens are never sent unencrypted.
    #[error("{address} is not https, and a token would be sent there")]
    NotHttps {
        /// The URL.
        address: String,
    },
    /// The URL has parts besides scheme, host and port.
    #[error("{address} has {what}: expected scheme, host and port alone")]
    TooMuch {
        /// The URL, without a password.
        address: String,
        /// The part that is not allowed.
        what: &'static str,
    },
}

/// The endpoint of requests, the authority that issues tokens for them, and the scope of these tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    management: Url,
    authority: Url,
    scope: String,
    /// The suffixes of the hosts of the cloud's storage accounts.
    storage: Vec<String>,
}

impl Endpoint {
    /// The same cloud at another address: a proxy, a private link, a simulator.
    pub fn at(self, address: &str) -> Result<Self, EndpointError> {
        Ok(Self { management: bare(address)?, ..self })
    }

    /// Uses tokens from another authority than the cloud's own.
    pub fn with_authority(self, address: &str) -> Result<Self, EndpointError> {
        Ok(Self { authority: bare(address)?, ..self })
    }

    /// Allows consoles on hosts with this suffix too, as in a private cloud.
    #[must_use]
    pub fn with_storage(mut self, suffix: &str) -> Self {
        self.storage.push(suffix.trim_start_matches('.').to_ascii_lowercase());
        self
    }

    /// Whether a blob may be read at `address`: in the cloud's storage, or at its resource manager, which may
    /// be a proxy or a simulator.
    pub(crate) fn admits_blob(&self, address: &Url) -> bool {
        let host = address.host_str().unwrap_or_default().to_ascii_lowercase();
        let is_storage = |suffix: &String| {
            host.strip_suffix(suffix.as_str()).is_some_and(|account| account.ends_with('.'))
                && address.port_or_known_default() == Some(443)
        };
        self.admits(address)
            || address.scheme() == "https"
                && address.username().is_empty()
                && address.password().is_none()
                && self.storage.iter().any(is_storage)
    }

    /// The URL of the resource manager.
    pub fn management(&self) -> &Url {
        &self.management
    }

    /// The authority that issues tokens.
    pub fn authority(&self) -> &Url {
        &self.authority
    }

    /// The scope that a token must have.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Whether a token may be sent to `address`.
    pub(crate) fn admits(&self, address: &Url) -> bool {
        address.scheme() == "https"
            && address.host() == self.management.host()
            && address.port_or_known_default() == self.management.port_or_known_default()
            && address.username().is_empty()
            && address.password().is_none()
    }
}

/// A URL that consists of scheme, host and port only.
fn bare(text: &str) -> Result<Url, EndpointError> {
    let not_an_address = || EndpointError::NotAnAddress { address: text.to_owned() };
    let mut url = Url::parse(text.trim()).map_err(|_| not_an_address())?;
    if !url.username().is_empty() || url.password().is_some() {
        let _ = url.set_password(None).and_then(|()| url.set_username(""));
        return Err(EndpointError::TooMuch { address: url.into(), what: "a user or password" });
    }
    if url.scheme() != "https" {
        return Err(EndpointError::NotHttps { address: url.into() });
    }
    if !url.has_host() {
        return Err(not_an_address());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(EndpointError::TooMuch { address: url.into(), what: "a path or query" });
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_has_several_names() {
        for (name, cloud) in [
            ("public", Cloud::Public),
            ("AzureCloud", Cloud::Public),
            ("AZUREPUBLICCLOUD", Cloud::Public),
            ("china", Cloud::China),
            ("AzureChinaCloud", Cloud::China),
            ("usgov", Cloud::UsGovernment),
            ("AzureUSGovernment", Cloud::UsGovernment),
            ("AzureUSGovernmentCloud", Cloud::UsGovernment),
        ] {
            assert_eq!(name.parse(), Ok(cloud), "{name}");
        }
        for cloud in [Cloud::Public, Cloud::China, Cloud::UsGovernment] {
            assert_eq!(cloud.to_string().parse(), Ok(cloud));
        }
    }

    #[test]
    fn an_unknown_cloud_is_refused_with_the_names_that_are_known() {
        let refused = "AzureGermanCloud".parse::<Cloud>().unwrap_err().to_string();
        for name in ["AzureGermanCloud", "public", "china", "usgovernment"] {
            assert!(refused.contains(name), "{refused}");
        }
    }

    #[test]
    fn another_address_keeps_what_tokens_are_for() {
        let endpoint = Cloud::Public.endpoint().at("https://127.0.0.1:8443").unwrap();
        assert_eq!(endpoint.management().as_str(), "https://127.0.0.1:8443/");
        assert_eq!(endpoint.scope(), "https://management.azure.com/.default");
        assert_eq!(endpoint.authority().host_str(), Some("login.microsoftonline.com"));
    }

    #[test]
    fn an_address_that_cannot_be_azures_is_refused() {
        for (address, why) in [
            ("management.azure.com", "not an address"),
            ("http://management.azure.com", "not https"),
            ("https://management.azure.com/subscriptions", "a path or query"),
            ("https://management.azure.com?x=1", "a path or query"),
            ("https://me:hunter2@management.azure.com", "a user or password"),
        ] {
            let refused = Cloud::Public.endpoint().at(address).unwrap_err().to_string();
            assert!(refused.contains(why), "{address}: {refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_console_is_read_from_the_clouds_storage_and_nowhere_else() {
        let endpoint = Cloud::Public.endpoint();
        for (address, admitted) in [
            ("https://diag1.blob.core.windows.net/c/serialconsole.log?sig=x", true),
            ("https://md-1.z9.blob.storage.azure.net/c/log", true),
            ("https://management.azure.com/bootdiagnostics/x", true),
            ("http://diag1.blob.core.windows.net/c", false),
            ("https://diag1.blob.core.windows.net:8443/c", false),
            ("https://blob.core.windows.net/c", false),
            ("https://evilblob.core.windows.net/c", false),
            ("https://diag1.blob.core.windows.net.evil.example/c", false),
            ("https://diag1.blob.core.windows.net@evil.example/c", false),
            ("https://169.254.169.254/metadata", false),
            ("https://kubernetes.default.svc/api", false),
            ("https://diag1.blob.core.usgovcloudapi.net/c", false),
        ] {
            assert_eq!(endpoint.admits_blob(&Url::parse(address).unwrap()), admitted, "{address}");
        }
        let own = Cloud::Public.endpoint().with_storage(".blob.local.example");
        assert!(own.admits_blob(&Url::parse("https://a.blob.local.example/c").unwrap()));
    }

    #[test]
    fn a_token_goes_to_the_resource_manager_and_nowhere_else() {
        let endpoint = Cloud::Public.endpoint();
        for (address, admitted) in [
            ("https://management.azure.com/x?y", true),
            ("https://MANAGEMENT.azure.com:443/x", true),
            ("http://management.azure.com/x", false),
            ("https://management.azure.com.evil.example/x", false),
            ("https://management.azure.com:8443/x", false),
            ("https://management.azure.com@evil.example/x", false),
            ("https://you@management.azure.com/x", false),
        ] {
            assert_eq!(endpoint.admits(&Url::parse(address).unwrap()), admitted, "{address}");
        }
    }
}
