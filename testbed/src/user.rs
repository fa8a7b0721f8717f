//! Users that authenticate with certificates.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use serde_json::json;

use crate::{Error, Result, certificates::Pair};

/// A user of the API server. RBAC determines the permissions of the user.
#[derive(Debug, Clone)]
pub struct User {
    name: String,
    group: Option<String>,
    kubeconfig: PathBuf,
    config: Config,
}

impl User {
    /// Writes certificate, key and kubeconfig into `directory`.
    pub(crate) async fn new(
        name: &str,
        group: Option<&str>,
        certificate: &Pair,
        server: &Server,
        directory: &Path,
    ) -> Result<Self> {
        let certificate_path = write(directory, "user.crt", &certificate.public)?;
        let key_path = write(directory, "user.key", &certificate.private)?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": {
                "server": server.url,
                "certificate-authority": server.certificate_authority,
            }}],
            "users": [{"name": name, "user": {
                "client-certificate": certificate_path,
                "client-key": key_path,
            }}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
            "current-context": "testbed",
        });
        // JSON is valid YAML for all readers of kubeconfigs.
        let kubeconfig = write(directory, "kubeconfig", &format!("{kubeconfig:#}\n"))?;
        let config = read_config(&kubeconfig).await.map_err(|source| Error::Kubeconfig {
            path: kubeconfig.clone(),
            source: Box::new(source),
        })?;
        Ok(Self { name: name.to_owned(), group: group.map(ToOwned::to_owned), kubeconfig, config })
    }

    /// The user name in RBAC.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group, if any, besides `system:authenticated`.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// A kubeconfig for programs that act as this user.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// The configuration for clients of this user.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// A new client that acts as this user.
    ///
    /// The client belongs to the asynchronous runtime in which it is created, and ends with it: a test that
    /// shares a control plane with others needs a client of its own.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone())
            .expect("the certificates were written by us, and a client needs nothing else")
    }
}

/// The address and the certificate authority of the API server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) certificate_authority: PathBuf,
}

async fn read_config(path: &Path) -> Result<Config, KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

/// Writes one of the testbed's own files and returns its path.
pub(crate) fn write(directory: &Path, name: &str, contents: &str) -> Result<PathBuf> {
    let path = directory.join(name);
    fs::write(&path, contents).map_err(Error::file("write", &path))?;
    Ok(path)
}
