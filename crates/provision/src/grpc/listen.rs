//! Listens for gRPC clients: on a unix socket for processes of the same user, or on a port with TLS 1.3 where
//! both sides present a certificate.
//!
//! A client's certificate must come from the authority, be meant for clients (extended key usage clientAuth),
//! and contain an allowed name. Each service has its own list of names: [`Restricted`].

mod access;
mod address;
mod client_name;
mod connection;
mod error;
mod handshakes;
mod limit;
mod socket;
mod tls;
mod verifier;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{Stream, unfold};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic::transport::Server;
use tracing::{debug, info, warn};

pub use self::access::Restricted;
pub use self::address::{Address, AddressError};
pub use self::client_name::{AllowedClients, ClientName, ClientNameError};
use self::connection::Connection;
pub use self::error::{ListenError, ServeError};
use self::handshakes::Handshakes;
use self::limit::Limited;
use self::socket::SocketFile;
pub use self::tls::{AUTHORITY_OPTION, CERTIFICATE_OPTION, KEY_OPTION, TlsError, TlsFiles};

/// The longest duration of a call. Karpenter's provider does not wait longer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes in a message: tonic's default, which each service sets itself.
pub const LARGEST: usize = 4 << 20;
/// The timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The pause between two probes of an idle connection.
const QUIET: Duration = Duration::from_secs(30);
/// The pause after a failed accept, for example without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A bound address on which clients connect. [`GrpcListener::serve`] accepts them.
///
/// Dropping the listener stops accepting connections, and removes the socket's file.
#[derive(Debug)]
pub struct GrpcListener {
    incoming: Incoming,
    address: Address,
}

#[derive(Debug)]
enum Incoming {
    Unix(UnixListener, SocketFile),
    Tls(TcpListener, Tls),
}

#[derive(Debug)]
struct Tls {
    files: TlsFiles,
    allowed: AllowedClients,
}

impl GrpcListener {
    /// Binds the address. A port needs TLS files, which are loaded at once. On a port, no client is accepted
    /// before [`GrpcListener::allowing`].
    pub async fn bind(address: Address, tls: Option<TlsFiles>) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Bind { address: address.to_string(), source };
        match (&address, tls) {
            (Address::Unix(path), None) => {
                let (listener, file) = socket::listen(path)?;
                Ok(Self { incoming: Incoming::Unix(listener, file), address })
            }
            (Address::Tcp { host, port }, Some(files)) => {
                let allowed = AllowedClients::default();
                files.load(&allowed)?;
                let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(failed)?;
                let port = listener.local_addr().as_ref().map_or(*port, SocketAddr::port);
                let address = Address::Tcp { host: host.clone(), port };
                let tls = Tls { files, allowed };
                Ok(Self { incoming: Incoming::Tls(listener, tls), address })
            }
            (Address::Unix(_), Some(_)) => Err(ListenError::Unused { address }),
            (Address::Tcp { .. }, None) => Err(ListenError::Open { address }),
        }
    }

    /// Sets the clients that are accepted over TLS: those of all services together. [`Restricted`] decides
    /// which service each client may use.
    #[must_use]
    pub fn allowing(mut self, allowed: AllowedClients) -> Self {
        if let Incoming::Tls(_, tls) = &mut self.incoming {
            tls.allowed = allowed;
        }
        self
    }

    /// The bound address, with the port that the system chose for port 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves clients until `stop` completes, then finishes the calls that are under way.
    pub async fn serve(
        self,
        routes: Routes,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (stopping, stopped) = oneshot::channel();
        let stop = async move {
            stop.await;
            let _ = stopping.send(());
        };
        // A client that holds its connection open does not prevent the stop.
        let patience = async move {
            match stopped.await {
                Ok(()) => tokio::time::sleep(LIMIT).await,
                Err(_) => std::future::pending().await,
            }
        };
        let layer = tower::layer::layer_fn(|inner| Limited { inner, limit: LIMIT });
        let (clients, _file) = self.incoming.clients();
        let served = Server::builder()
            .http2_keepalive_interval(Some(QUIET))
            .http2_keepalive_timeout(Some(LIMIT))
            .layer(layer)
            .add_routes(routes)
            .serve_with_incoming_shutdown(clients, stop);
        tokio::select! {
            served = served => served.map_err(|source| ServeError { source }),
            () = patience => Ok(()),
        }
    }
}

type Clients = Pin<Box<dyn Stream<Item = Result<Connection, io::Error>> + Send>>;

impl Incoming {
    fn clients(self) -> (Clients, Option<SocketFile>) {
        match self {
            Self::Unix(listener, file) => (Box::pin(unix_clients(listener)), Some(file)),
            Self::Tls(listener, tls) => (Box::pin(tls_clients(listener, Arc::new(tls))), None),
        }
    }
}

fn unix_clients(
    listener: UnixListener,
) -> impl Stream<Item = Result<Connection, io::Error>> + Send {
    unfold(listener, async |listener| {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Some((Ok(Connection::Unix(stream)), listener)),
                Err(error) => pause(&error).await,
            }
        }
    })
}

/// Clients whose TLS handshake has succeeded. A slow handshake delays no other.
fn tls_clients(
    listener: TcpListener,
    tls: Arc<Tls>,
) -> impl Stream<Item = Result<Connection, io::Error>> + Send {
    unfold((listener, tls, Handshakes::new()), async |(listener, tls, mut handshakes)| {
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        let ended = handshakes.begin(from.ip(), admit(stream, from, tls.clone()));
                        if let Some(address) = ended {
                            debug!(%address, "handshake ended: too many connections without a certificate");
                        }
                    }
                    Err(error) => pause(&error).await,
                },
                admitted = handshakes.next() => if let Some(connection) = admitted {
                    return Some((Ok(connection), (listener, tls, handshakes)));
                }
            }
        }
    })
}

async fn pause(error: &io::Error) {
    warn!(%error, "cannot accept gRPC connections; pausing");
    tokio::time::sleep(PAUSE).await;
}

async fn admit(stream: TcpStream, from: SocketAddr, tls: Arc<Tls>) -> Option<Connection> {
    let config = match tls.files.load(&tls.allowed) {
        Ok(config) => config,
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            warn!(%from, %error, why, "client refused: the TLS files cannot be loaded");
            return None;
        }
    };
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => Some(Connection::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            info!(%from, %error, "client refused: it has shown no certificate that is accepted");
            None
        }
        Err(_) => {
            debug!(%from, "client refused: it has shown no certificate in time");
            None
        }
    }
}
