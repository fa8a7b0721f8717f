//! A user at a terminal, with access to Azure.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::Result;
use bringup_azure_sim::endpoints::HttpsServer;
use bringup_azure_sim::simulator::Simulator;
use bringup_testbed::User;
use tempfile::TempDir;

/// A terminal with access to one simulated Azure.
pub(crate) struct Terminal {
    door: HttpsServer,
    directory: TempDir,
}

impl Terminal {
    pub(crate) async fn new(azure: &Simulator) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("token"), "signed by no authority")?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let door = HttpsServer::start(azure.clone(), any, &directory.path().join("ca.pem")).await?;
        Ok(Self { door, directory })
    }

    /// The bringup command, for a user with access to Azure.
    pub(crate) fn bringup(&self, user: &User, arguments: &[&str]) -> Command {
        let mut command = bringup(user, arguments);
        command
            .env("BRINGUP_AZURE_ENDPOINT", self.door.endpoint())
            .env("BRINGUP_AZURE_CA_FILE", self.directory.path().join("ca.pem"))
            .env("AZURE_CLIENT_ID", "11111111-1111-1111-1111-111111111111")
            .env("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222")
            .env("AZURE_FEDERATED_TOKEN_FILE", self.directory.path().join("token"))
            .env("AZURE_AUTHORITY_HOST", self.door.endpoint());
        command
    }
}

/// The bringup command, for a user without Azure credentials: the credentials of the person who runs the
/// tests are not used.
pub(crate) fn bringup(user: &User, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
    command
        .args(arguments)
        .env("KUBECONFIG", user.kubeconfig_path())
        .env("BRINGUP_AZURE_CREDENTIAL", "workload-identity")
        .env_remove("AZURE_FEDERATED_TOKEN_FILE");
    command
}
