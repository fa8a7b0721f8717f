//! A running control plane.

use std::{path::Path, process::Command};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;

use crate::{
    Assets, ControlPlaneBuilder, CrdSet, Result, User,
    builder::{is_ready, issue},
    certificates::Authority,
    commands::Files,
    definitions,
    lifeline::Lifeline,
    port::ReservedPort,
    program::Program,
    rights,
    user::Server,
};

/// A Kubernetes control plane that belongs to this process.
///
/// # Guarantees
///
/// - Its programs end and its directory is deleted when this value is dropped, and also when this process
///   ends without dropping it, even by `SIGKILL`.
/// - Any number of control planes run side by side.
/// - It listens on loopback only, and knows only users created here.
///
/// # Caveats
///
/// - There are no nodes, so pods do not run: see [`crate::kubelet`].
/// - Without a controller manager nothing is garbage collected, no service accounts are created, and
///   namespaces never finish terminating.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped first: the lifeline ends the programs, and then the other fields only wait for them.
    pub(crate) lifeline: Lifeline,
    pub(crate) programs: Programs,
    pub(crate) authority: Authority,
    pub(crate) files: Files,
    pub(crate) server: Server,
    pub(crate) admin: User,
    pub(crate) assets: Assets,
    pub(crate) _port: ReservedPort,
}

#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) etcd: Program,
    pub(crate) api_server: Program,
    pub(crate) extra: Vec<Program>,
}

impl Programs {
    /// Fails if a program no longer runs. Checks etcd first, because the others do not survive without etcd.
    pub(crate) fn check(&self) -> Result<()> {
        self.etcd.check()?;
        self.api_server.check()?;
        self.extra.iter().try_for_each(Program::check)
    }
}

impl ControlPlane {
    /// etcd and kube-apiserver, with the definitions of [`CrdSet::DEFAULT`].
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// A builder for a control plane with other options.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// The administrator.
    pub fn admin(&self) -> &User {
        &self.admin
    }

    /// A new client with all permissions: see [`User::client`].
    pub fn client(&self) -> Client {
        self.admin.client()
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig_path(&self) -> &Path {
        self.admin.kubeconfig_path()
    }

    /// Creates a user without permissions, until a role is bound to the user: see [`Self::bind`].
    ///
    /// The full name of a service account (`system:serviceaccount:NAMESPACE:NAME`) is a valid user name too;
    /// a `RoleBinding` to that account applies to this user.
    pub async fn user(&self, name: &str, group: Option<&str>) -> Result<User> {
        let users = self.lifeline.directory().join("users");
        issue(&self.authority, &self.server, &users, name, group).await
    }

    /// Binds a cluster role to a user, and waits until the API server acts on it.
    pub async fn bind(&self, user: &User, cluster_role: &str) -> Result<()> {
        rights::bind(&self.client(), user, cluster_role).await
    }

    /// Installs a set of definitions, replacing existing ones, and waits until the API server serves them.
    pub async fn install(&self, set: CrdSet) -> Result<()> {
        let manifests = definitions::read(&self.assets, &[set])?;
        definitions::install(&self.client(), manifests).await
    }

    /// Installs further definitions, and waits until the API server serves them.
    pub async fn install_definitions(
        &self,
        crds: impl IntoIterator<Item = CustomResourceDefinition>,
    ) -> Result<()> {
        let manifests = crds.into_iter().map(definitions::Manifest::from).collect();
        definitions::install(&self.client(), manifests).await
    }

    /// Starts a program that ends with this control plane, or with this process, however the process ends.
    pub fn spawn(&self, command: &mut Command) -> std::io::Result<std::process::Child> {
        self.lifeline.spawn(command)
    }

    /// A `kubectl` command as the administrator.
    pub fn kubectl(&self) -> Result<Command> {
        let mut command = Command::new(self.assets.program("kubectl")?);
        command
            .env("KUBECONFIG", self.kubeconfig_path())
            .env("KUBECACHEDIR", self.directory().join("kubectl-cache"));
        Ok(command)
    }

    /// The URL of the API server, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The folder of logs (`etcd.log`, `kube-apiserver.log`, …), certificates and data.
    pub fn directory(&self) -> &Path {
        self.lifeline.directory()
    }

    /// Fails if a program no longer runs, with the program's name and exit status, or if the API server is
    /// not ready.
    pub async fn health(&self) -> Result<()> {
        self.programs.check()?;
        is_ready(&self.client()).await
    }

    /// The process id of etcd.
    pub fn etcd_pid(&self) -> u32 {
        self.programs.etcd.id()
    }

    /// Kills etcd, for tests of the consequences.
    pub fn kill_etcd(&self) {
        self.programs.etcd.kill();
    }
}
