//! The command lines of the control plane's programs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Assets, Result,
    certificates::{self, Authority, Pair},
    user::write,
};

/// The address range of Services. The addresses are not routed: there are no nodes.
const SERVICE_RANGE: &str = "10.0.0.0/24";
const API_SERVER_SERVICE: &str = "10.0.0.1";

/// A program of the control plane, by the name of its binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Role {
    pub(crate) fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }

    /// The user name of the program; RBAC has built-in roles for these names.
    pub(crate) fn user(self) -> &'static str {
        match self {
            Self::Etcd | Self::ApiServer => "testbed",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
        }
    }
}

/// The files that the programs' command lines point to.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    pub(crate) authority: PairFiles,
    server: PairFiles,
    service_accounts: PairFiles,
}

#[derive(Debug)]
pub(crate) struct PairFiles {
    pub(crate) public: PathBuf,
    private: PathBuf,
}

impl Files {
    pub(crate) fn write(directory: &Path, authority: &Authority) -> Result<Self> {
        let server = authority.issue_to_server(
            Role::ApiServer.binary(),
            &["127.0.0.1", "localhost", API_SERVER_SERVICE, "kubernetes.default.svc"],
        )?;
        let write = |name: &str, pair: &Pair| {
            Ok(PairFiles {
                public: write(directory, &format!("{name}.crt"), &pair.public)?,
                private: write(directory, &format!("{name}.key"), &pair.private)?,
            })
        };
        Ok(Self {
            directory: directory.to_owned(),
            authority: write("authority", &authority.pair())?,
            server: write("server", &server)?,
            service_accounts: write("service-accounts", &certificates::service_account_key()?)?,
        })
    }

    /// etcd listens on a socket in the directory: a socket needs no port, and other users have no access.
    fn etcd_url(&self, name: &str) -> String {
        format!("unix://{}/{name}.sock", self.directory.display())
    }
}

pub(crate) fn etcd(assets: &Assets, files: &Files) -> Result<Command> {
    let mut command = Command::new(assets.program(Role::Etcd.binary())?);
    command
        .arg(flag("data-dir", files.directory.join("etcd")))
        .arg(flag("listen-client-urls", files.etcd_url("etcd")))
        .arg(flag("listen-peer-urls", files.etcd_url("etcd-peer")))
        // The flag needs an address, which is never used.
        .arg(flag("advertise-client-urls", "http://localhost:0"))
        // The data is deleted with the test: durability would only cost time.
        .arg("--unsafe-no-fsync")
        .arg(flag("log-level", "error"));
    Ok(command)
}

/// `controlled` is true if there is a controller manager, which undoes the effect of some admission plugins:
/// they make pods wait for a service account, and taint new nodes until the nodes are ready.
pub(crate) fn api_server(
    assets: &Assets,
    files: &Files,
    port: u16,
    controlled: bool,
) -> Result<Command> {
    let mut command = Command::new(assets.program(Role::ApiServer.binary())?);
    command
        .arg(flag("etcd-servers", files.etcd_url("etcd")))
        .arg(flag("bind-address", "127.0.0.1"))
        .arg(flag("advertise-address", "127.0.0.1"))
        .arg(flag("secure-port", port.to_string()))
        // A socket of this process holds the port: see `ReservedPort`.
        .arg("--permit-port-sharing")
        .arg(flag("client-ca-file", &files.authority.public))
        .arg(flag("tls-cert-file", &files.server.public))
        .arg(flag("tls-private-key-file", &files.server.private))
        .arg(flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"))
        .arg(flag("service-account-key-file", &files.service_accounts.public))
        .arg(flag("service-account-signing-key-file", &files.service_accounts.private))
        .arg(flag("service-cluster-ip-range", SERVICE_RANGE))
        .arg(flag("authorization-mode", "RBAC"))
        // Machines that join have no other credentials.
        .arg("--enable-bootstrap-token-auth")
        .arg("--allow-privileged");
    if !controlled {
        command.arg(flag("disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"));
    }
    Ok(command)
}

pub(crate) fn controller_manager(
    assets: &Assets,
    files: &Files,
    kubeconfig: &Path,
) -> Result<Command> {
    let mut command = client_of_api_server(assets, Role::ControllerManager, kubeconfig)?;
    command
        .arg("--use-service-account-credentials")
        // With the default of 20 requests a second, the start takes seconds.
        .arg(flag("kube-api-qps", "500"))
        .arg(flag("kube-api-burst", "1000"))
        .arg(flag("service-account-private-key-file", &files.service_accounts.private))
        .arg(flag("root-ca-file", &files.authority.public))
        .arg(flag("cluster-signing-cert-file", &files.authority.public))
        .arg(flag("cluster-signing-key-file", &files.authority.private));
    Ok(command)
}

pub(crate) fn scheduler(assets: &Assets, kubeconfig: &Path) -> Result<Command> {
    client_of_api_server(assets, Role::Scheduler, kubeconfig)
}

fn client_of_api_server(assets: &Assets, role: Role, kubeconfig: &Path) -> Result<Command> {
    let mut command = Command::new(assets.program(role.binary())?);
    command
        .arg(flag("kubeconfig", kubeconfig))
        .arg("--leader-elect=false")
        // No test reads the program's health and metrics, so it needs no port.
        .arg(flag("secure-port", "0"));
    Ok(command)
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(format!("--{name}="));
    argument.push(value);
    argument
}
