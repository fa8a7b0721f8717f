//! The options for access to Azure, shared by every command that reads from Azure.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_azure::{Arm, Cloud, CredentialKind, transport};
use clap::{Arg, Args};

/// The Azure cloud, and the credential to use there.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "they are called as they are typed")]
pub(crate) struct AzureArguments {
    /// Azure cloud: public, china or usgov
    #[arg(long, value_name = "CLOUD", env = "BRINGUP_AZURE_CLOUD", default_value = "public")]
    azure_cloud: Cloud,
    /// URL of Azure Resource Manager, if it is not the default of the cloud
    #[arg(long, value_name = "URL", env = "BRINGUP_AZURE_ENDPOINT")]
    azure_endpoint: Option<String>,
    /// File with an additional certificate authority to trust, in PEM
    #[arg(long, value_name = "FILE", env = "BRINGUP_AZURE_CA_FILE")]
    azure_ca_file: Option<PathBuf>,
    /// Additional domain suffix of storage accounts; serial console logs are
    /// downloaded only from trusted suffixes
    #[arg(long, value_name = "SUFFIX", env = "BRINGUP_AZURE_STORAGE_SUFFIX")]
    azure_storage_suffix: Option<String>,
    /// Azure credential: workload-identity, managed-identity or azure-cli
    #[arg(
        long,
        value_name = "KIND",
        env = "BRINGUP_AZURE_CREDENTIAL",
        default_value = "workload-identity"
    )]
    azure_credential: CredentialKind,
    /// Client ID of the managed identity, if the machine has several
    #[arg(long, value_name = "ID", env = "BRINGUP_AZURE_CLIENT_ID")]
    azure_client_id: Option<String>,
}

/// The option for interactive commands: by default they use the user who is logged in to the Azure CLI.
pub(crate) fn of_a_person(credential: Arg) -> Arg {
    credential.default_value("azure-cli")
}

impl AzureArguments {
    /// A client for Azure Resource Manager within these limits.
    pub(crate) fn arm(&self, limits: Limits, clock: Arc<WallClock>) -> anyhow::Result<Arm> {
        let mut endpoint = self.azure_cloud.endpoint();
        if let Some(address) = &self.azure_endpoint {
            endpoint = endpoint.at(address).context("cannot use the value of --azure-endpoint")?;
        }
        if let Some(suffix) = &self.azure_storage_suffix {
            endpoint = endpoint.with_storage(suffix);
        }
        if let Ok(authority) = std::env::var("AZURE_AUTHORITY_HOST") {
            endpoint = endpoint
                .with_authority(&authority)
                .context("cannot use the value of AZURE_AUTHORITY_HOST")?;
        }
        let transport = transport::https(self.azure_ca_file.as_deref())
            .context("cannot set up HTTPS connections to Azure")?;
        let kind = match (&self.azure_credential, &self.azure_client_id) {
            (CredentialKind::ManagedIdentity { client_id: None }, Some(id)) => {
                CredentialKind::ManagedIdentity { client_id: Some(id.clone()) }
            }
            (kind, _) => kind.clone(),
        };
        let credential = kind
            .credential(&endpoint, transport.clone(), |name| std::env::var(name).ok())
            .with_context(|| format!("cannot use the Azure credential {kind}"))?;
        Ok(Arm::with_limits(endpoint, credential, transport, clock, limits))
    }
}
