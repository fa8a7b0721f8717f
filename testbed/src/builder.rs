//! Starts a control plane with the requested options.

use std::{collections::BTreeSet, fs, path::Path, sync::Once};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

use crate::{
    Assets, ControlPlane, CrdSet, Error, Result, User,
    certificates::Authority,
    commands::{self, Files, Role},
    control_plane::Programs,
    definitions,
    lifeline::Lifeline,
    port::ReservedPort,
    program::Program,
    rights,
    user::Server,
    wait,
};

/// The options of a control plane.
#[derive(Debug, Clone)]
pub struct ControlPlaneBuilder {
    assets: Option<Assets>,
    crds: Vec<CrdSet>,
    extra: BTreeSet<Role>,
    port: Option<u16>,
}

impl Default for ControlPlaneBuilder {
    fn default() -> Self {
        Self { assets: None, crds: CrdSet::DEFAULT.to_vec(), extra: BTreeSet::new(), port: None }
    }
}

impl ControlPlaneBuilder {
    /// Runs kube-controller-manager too: service accounts, garbage collection,
    /// signing of certificates, the node lifecycle.
    #[must_use]
    pub fn with_controller_manager(mut self) -> Self {
        self.extra.insert(Role::ControllerManager);
        self
    }

    /// Runs kube-scheduler too.
    #[must_use]
    pub fn with_scheduler(mut self) -> Self {
        self.extra.insert(Role::Scheduler);
        self
    }

    /// Installs these definitions, instead of [`CrdSet::DEFAULT`].
    ///
    /// If two sets define the same resource, the later set counts.
    #[must_use]
    pub fn crds(mut self, sets: impl IntoIterator<Item = CrdSet>) -> Self {
        self.crds = sets.into_iter().collect();
        self
    }

    /// Serves on this port of 127.0.0.1, instead of any free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Uses these programs and definitions, instead of [`Assets::find`].
    #[must_use]
    pub fn assets(mut self, assets: Assets) -> Self {
        self.assets = Some(assets);
        self
    }

    /// Starts the programs and waits until the API server is ready and serves every requested definition.
    ///
    /// If anything fails, the programs are stopped again, and the error contains the name of the failed
    /// program and the end of its log.
    pub async fn start(self) -> Result<ControlPlane> {
        Box::pin(self.launch()).await
    }

    async fn launch(self) -> Result<ControlPlane> {
        install_tls_provider();
        let assets = match self.assets {
            Some(assets) => assets,
            None => find_assets().await?,
        };
        // Missing programs are reported before anything is started.
        for role in &self.extra {
            assets.program(role.binary())?;
        }
        let manifests = definitions::read(&assets, &self.crds)?;
        let controlled = self.extra.contains(&Role::ControllerManager);

        let mut control_plane = launch(assets, self.port, controlled).await?;
        for role in self.extra {
            launch_extra(&mut control_plane, role).await?;
        }
        let client = control_plane.client();
        let programs = &control_plane.programs;
        tokio::try_join!(
            definitions::install(&client, manifests),
            rights::let_kubelets_join(&client),
            await_controllers(&client, programs, controlled),
        )
        // If a program has ended, its error explains more.
        .map_err(|error| programs.check().err().unwrap_or(error))?;
        Ok(control_plane)
    }
}

/// Starts etcd and the API server in parallel: the API server waits for etcd.
async fn launch(assets: Assets, port: Option<u16>, controlled: bool) -> Result<ControlPlane> {
    let lifeline = Lifeline::new()?;
    let authority = Authority::new()?;
    let files = Files::write(lifeline.directory(), &authority)?;
    let port = ReservedPort::new(port)?;
    let server = Server {
        url: format!("https://127.0.0.1:{}", port.number()),
        certificate_authority: files.authority.public.clone(),
    };
    let etcd = commands::etcd(&assets, &files)?;
    let api_server = commands::api_server(&assets, &files, port.number(), controlled)?;
    let programs = Programs {
        etcd: Program::start(Role::Etcd.binary(), etcd, &lifeline)?,
        api_server: Program::start(Role::ApiServer.binary(), api_server, &lifeline)?,
        extra: Vec::new(),
    };
    let users = lifeline.directory().join("users");
    let admin = issue(&authority, &server, &users, "admin", Some("system:masters")).await?;
    await_ready(&admin.client(), &programs).await?;
    Ok(ControlPlane { lifeline, programs, authority, files, server, admin, assets, _port: port })
}

async fn launch_extra(control_plane: &mut ControlPlane, role: Role) -> Result<()> {
    let user = control_plane.user(role.user(), None).await?;
    let ControlPlane { assets, files, lifeline, .. } = &*control_plane;
    let command = match role {
        Role::ControllerManager => {
            commands::controller_manager(assets, files, user.kubeconfig_path())
        }
        Role::Scheduler => commands::scheduler(assets, user.kubeconfig_path()),
        Role::Etcd | Role::ApiServer => return Ok(()), // already running
    }?;
    let program = Program::start(role.binary(), command, lifeline)?;
    control_plane.programs.extra.push(program);
    Ok(())
}

/// Creates a user with a directory of its own.
pub(crate) async fn issue(
    authority: &Authority,
    server: &Server,
    users: &Path,
    name: &str,
    group: Option<&str>,
) -> Result<User> {
    let certificate = authority.issue_to_user(name, group)?;
    fs::create_dir_all(users).map_err(Error::file("create", users))?;
    let directory = tempfile::Builder::new()
        .prefix(&name.replace(['/', ':'], "-"))
        .tempdir_in(users)
        .map_err(Error::file("create", users))?
        .keep(); // deleted with its parent directory
    User::new(name, group, &certificate, server, &directory).await
}

/// Kubernetes clients use the TLS provider of the process. A provider must be installed before the first
/// client is created, and must not replace an existing one.
fn install_tls_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // This fails if the program has already installed a provider, which is then used.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// Building takes minutes, and must not block the other tasks of this thread.
async fn find_assets() -> Result<Assets> {
    match tokio::task::spawn_blocking(Assets::find).await {
        Ok(assets) => assets,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

async fn await_ready(client: &Client, programs: &Programs) -> Result<()> {
    let ready = wait::answer("kube-apiserver becoming ready", async || {
        programs.check()?;
        Ok(is_ready(client).await.ok())
    });
    ready.await.map_err(|error| match error {
        Error::TimedOut { awaited, limit, .. } => {
            Error::TimedOut { awaited, limit, log: programs.api_server.log_tail() }
        }
        other => other,
    })
}

/// Queries the readiness of the API server.
pub(crate) async fn is_ready(client: &Client) -> Result<()> {
    let request =
        http::Request::get("/readyz").body(Vec::new()).expect("a constant path makes a request");
    client
        .request_text(request)
        .await
        .map(|_ok| ())
        .map_err(Error::api("get an ok from /readyz of kube-apiserver"))
}

/// Waits until the controller manager works: then the first object that pods need exists.
async fn await_controllers(client: &Client, programs: &Programs, controlled: bool) -> Result<()> {
    if !controlled {
        return Ok(());
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    wait::answer("the default service account being made", async || {
        programs.check()?;
        let account = accounts.get_opt("default").await;
        account.map_err(Error::api("get the default service account"))
    })
    .await
    .map(|_account| ())
}
