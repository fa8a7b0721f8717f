//! The identity of bringup in Azure: configured, never guessed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::TokenCredential;
use azure_core::http::{ClientOptions, HttpClient, RetryOptions, Transport};
use azure_identity::{
    AzureCliCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};

use crate::cloud::Endpoint;

/// The supported kinds of identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialKind {
    /// Workload identity: a Kubernetes service account that Entra trusts.
    WorkloadIdentity,
    /// A managed identity of the machine that runs this process.
    ManagedIdentity {
        /// The client ID of a user-assigned identity; absent: the system-assigned one.
        client_id: Option<String>,
    },
    /// The user who is logged in to the Azure CLI.
    AzureCli,
}

/// The name of no kind of credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a kind of credential: expected workload-identity, managed-identity, \
     managed-identity:<client id>, or azure-cli"
)]
pub struct UnknownCredential(String);

impl FromStr for CredentialKind {
    type Err = UnknownCredential;

    fn from_str(text: &str) -> Result<Self, UnknownCredential> {
        match text.split_once(':') {
            None => match text {
                "workload-identity" => Ok(Self::WorkloadIdentity),
                "managed-identity" => Ok(Self::ManagedIdentity { client_id: None }),
                "azure-cli" => Ok(Self::AzureCli),
                _ => Err(UnknownCredential(text.to_owned())),
            },
            Some(("managed-identity", client)) if !client.is_empty() => {
                Ok(Self::ManagedIdentity { client_id: Some(client.to_owned()) })
            }
            Some(_) => Err(UnknownCredential(text.to_owned())),
        }
    }
}

impl fmt::Display for CredentialKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkloadIdentity => formatter.write_str("workload-identity"),
            Self::ManagedIdentity { client_id: None } => formatter.write_str("managed-identity"),
            Self::ManagedIdentity { client_id: Some(client) } => {
                write!(formatter, "managed-identity:{client}")
            }
            Self::AzureCli => formatter.write_str("azure-cli"),
        }
    }
}

/// Why a credential could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The webhook of workload identity has not configured this pod.
    #[error(
        "workload identity needs {}, which {} not set: label the pod \
         azure.workload.identity/use=true and annotate its service account with \
         azure.workload.identity/client-id, or choose another credential",
        variables.join(" and "),
        if variables.len() == 1 { "is" } else { "are" }
    )]
    Variables {
        /// The missing environment variables.
        variables: Vec<&'static str>,
    },
    /// The service account's token cannot be read.
    #[error(
        "cannot read the service account's token {}, which AZURE_FEDERATED_TOKEN_FILE names: \
         is the volume of workload identity mounted?",
        path.display()
    )]
    TokenFile {
        /// The path of the token.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The Azure CLI is not installed.
    #[error(
        "az is not in PATH: install the Azure CLI and run `az login`, or choose another credential"
    )]
    NoAzureCli,
    /// The identity library refuses the configuration.
    #[error("cannot use {kind} as credential")]
    Refused {
        /// The kind of the credential.
        kind: CredentialKind,
        /// The error of the library.
        source: azure_core::Error,
    },
}

impl CredentialKind {
    /// Creates the credential. `environment` reads a variable: `|name| std::env::var(name).ok()`.
    pub fn credential(
        &self,
        endpoint: &Endpoint,
        transport: Arc<dyn HttpClient>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn TokenCredential>, CredentialError> {
        let refused = |source| CredentialError::Refused { kind: self.clone(), source };
        match self {
            Self::WorkloadIdentity => {
                let mut options = workload_identity(&environment)?;
                options.credential_options.client_options = client_options(endpoint, transport);
                Ok(WorkloadIdentityCredential::new(Some(options)).map_err(refused)?)
            }
            Self::ManagedIdentity { client_id } => {
                let options = ManagedIdentityCredentialOptions {
                    user_assigned_id: client_id.clone().map(UserAssignedId::ClientId),
                    client_options: client_options(endpoint, transport),
                };
                Ok(ManagedIdentityCredential::new(Some(options)).map_err(refused)?)
            }
            Self::AzureCli => {
                let path = environment("PATH").unwrap_or_default();
                let found = std::env::split_paths(&path).any(|directory| {
                    ["az", "az.cmd", "az.exe"].iter().any(|name| directory.join(name).is_file())
                });
                if !found {
                    return Err(CredentialError::NoAzureCli);
                }
                Ok(AzureCliCredential::new(None).map_err(refused)?)
            }
        }
    }
}

fn workload_identity(
    environment: impl Fn(&str) -> Option<String>,
) -> Result<WorkloadIdentityCredentialOptions, CredentialError> {
    let mut variables = Vec::new();
    let mut value = |name: &'static str| {
        let value = environment(name).filter(|value| !value.is_empty());
        if value.is_none() {
            variables.push(name);
        }
        value
    };
    let client_id = value("AZURE_CLIENT_ID");
    let tenant_id = value("AZURE_TENANT_ID");
    let token_file_path = value("AZURE_FEDERATED_TOKEN_FILE").map(PathBuf::from);
    if !variables.is_empty() {
        return Err(CredentialError::Variables { variables });
    }
    if let Some(path) = &token_file_path {
        std::fs::File::open(path)
            .map_err(|source| CredentialError::TokenFile { path: path.clone(), source })?;
    }
    Ok(WorkloadIdentityCredentialOptions {
        client_id,
        tenant_id,
        token_file_path,
        ..WorkloadIdentityCredentialOptions::default()
    })
}

/// Options with our transport, the endpoint's authority, and a single attempt: the caller retries when it
/// needs a token.
fn client_options(endpoint: &Endpoint, transport: Arc<dyn HttpClient>) -> ClientOptions {
    let mut cloud = CustomConfiguration::default();
    cloud.authority_host = endpoint.authority().to_string();
    ClientOptions {
        transport: Some(Transport::new(transport)),
        retry: RetryOptions::none(),
        cloud: Some(Arc::new(cloud.into())),
        ..ClientOptions::default()
    }
}

#[cfg(test)]
mod tests;
