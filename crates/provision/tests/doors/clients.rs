//! Running listeners, and clients of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bringup_provision::grpc::listen::{Address, GrpcListener, ServeError};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::certificates::NAME;

/// A listener that serves until it is stopped.
pub(crate) struct Open {
    pub(crate) address: Address,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Open {
    pub(crate) fn new(listener: GrpcListener, routes: Routes) -> Self {
        let address = listener.address().clone();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        let task = tokio::spawn(listener.serve(routes, stopped));
        Self { address, stop, task }
    }

    /// Stops the listener; the returned task ends once the listener has stopped.
    pub(crate) fn stop(self) -> JoinHandle<Result<(), ServeError>> {
        drop(self.stop);
        self.task
    }

    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.stop().await??)
    }
}

pub(crate) fn unix(path: &Path) -> Address {
    Address::Unix(path.to_owned())
}

/// A client on a unix socket.
pub(crate) async fn on_socket(path: &Path) -> Result<Channel> {
    let path: PathBuf = path.to_owned();
    let connect = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Ok(Endpoint::from_static("http://bringup").connect_with_connector(connect).await?)
}

/// A client with TLS.
pub(crate) async fn with_tls(address: &Address, config: Arc<ClientConfig>) -> Result<Channel> {
    let Address::Tcp { port, .. } = *address else { bail!("{address} is no port") };
    let connect = service_fn(move |_| {
        let connector = TlsConnector::from(config.clone());
        async move {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            let name = ServerName::try_from(NAME).map_err(std::io::Error::other)?;
            connector.connect(name, stream).await.map(TokioIo::new)
        }
    });
    let endpoint = Endpoint::from_static("http://bringup");
    endpoint.connect_with_connector(connect).await.context("connect with TLS")
}
