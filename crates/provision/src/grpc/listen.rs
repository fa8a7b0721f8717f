//! Listens for gRPC clients: on a unix socket for processes of the same user, or on a port with TLS 1.3 on
//! which both sides show a certificate.
//!
//! Of the certificates of the authority, only those are accepted that are for clients (extended key
//! usage clientAuth) and carry an allowed name. Each service has its own list: [`Restricted`].

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

/// How long any call may take. Karpenter's provider does not wait longer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The largest message that is accepted; it is tonic's default, which each service sets itself.
pub const LARGEST: usize = 4 << 20;
/// How long a client may take to show its certificate.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How often an idle connection is probed.
const QUIET: Duration = Duration::from_secs(30);
/// The pause when no client can be accepted, as when file descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// A bound address on which clients connect. No client is accepted before [`GrpcListener::serve`].
///
/// Dropped, it accepts no more connections, and the file of its socket is removed.
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
    /// Binds the address; a port needs the files of TLS, which are loaded at once. Over a port, no
    /// client is accepted before [`GrpcListener::allowing`].
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

    /// The same, where these clients are accepted over TLS: those of all its services. [`Restricted`]
    /// decides which service each of them may use.
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

    /// Serves clients until `stop`; calls that are under way then are completed.
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
        // A client that keeps its connection open does not prevent the stop.
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

/// Clients that have shown a certificate. A slow one delays no other.
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
