//! Doors: a unix socket for us alone, or a port with TLS 1.3 on which both sides show a certificate.
//!
//! Of the certificates of the authority, only those are accepted that are for clients (extended key
//! usage clientAuth) and carry an allowed name. Each service has its own list: [`Restricted`].

mod access;
mod address;
mod client_name;
mod connection;
mod handshakes;
mod limit;
mod socket;
mod tls;
mod verifier;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
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
use self::handshakes::Handshakes;
use self::limit::Limited;
use self::socket::SocketFile;
pub use self::tls::{AUTHORITY_OPTION, CERTIFICATE_OPTION, KEY_OPTION, TlsError, TlsFiles};

/// How long any call may take. Karpenter's provider does not wait longer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The largest message that is taken. Services are to be told; it is what they begin with.
pub const LARGEST: usize = 4 << 20;
/// How long a client may take to show its certificate.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How often a quiet client is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);
/// The pause when no client can be accepted, as when file descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// There is no door.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Another process listens there.
    #[error("cannot listen on {path}: somebody already does")]
    Occupied {
        /// The socket.
        path: PathBuf,
    },
    /// Something else is there, and is left alone.
    #[error("cannot listen on {path}: it exists and is no socket")]
    NotASocket {
        /// What is there.
        path: PathBuf,
    },
    /// A port without TLS.
    #[error(
        "cannot listen on {address}: only a unix socket does without --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION}"
    )]
    Open {
        /// The address.
        address: Address,
    },
    /// TLS on a unix socket.
    #[error(
        "{address} is a unix socket, on which --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION} have no meaning"
    )]
    Unused {
        /// The address.
        address: Address,
    },
    /// The files are not as they must be.
    #[error("cannot listen with TLS")]
    Tls(#[from] TlsError),
}

/// The server accepts no more clients.
#[derive(Debug, thiserror::Error)]
#[error("the door has failed")]
pub struct ServeError {
    source: tonic::transport::Error,
}

/// A place where clients connect. Its address is bound, and no client is accepted yet.
///
/// Dropped, it takes no more connections, and the file of its socket is removed.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    address: Address,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener, SocketFile),
    Tls(TcpListener, Tls),
}

#[derive(Debug)]
struct Tls {
    files: TlsFiles,
    allowed: AllowedClients,
}

impl Door {
    /// Takes the address; a port needs the files of TLS, which are tried at once. Over a port, no
    /// client is let in before [`Door::allowing`].
    pub async fn bind(address: Address, tls: Option<TlsFiles>) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Bind { address: address.to_string(), source };
        match (&address, tls) {
            (Address::Unix(path), None) => {
                let (listener, file) = socket::listen(path)?;
                Ok(Self { listener: Listener::Unix(listener, file), address })
            }
            (Address::Tcp { host, port }, Some(files)) => {
                let allowed = AllowedClients::default();
                files.load(&allowed)?;
                let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(failed)?;
                let port = listener.local_addr().as_ref().map_or(*port, SocketAddr::port);
                let address = Address::Tcp { host: host.clone(), port };
                let tls = Tls { files, allowed };
                Ok(Self { listener: Listener::Tls(listener, tls), address })
            }
            (Address::Unix(_), Some(_)) => Err(ListenError::Unused { address }),
            (Address::Tcp { .. }, None) => Err(ListenError::Open { address }),
        }
    }

    /// The same, where these clients are let in over TLS: those of all its services. Which of the
    /// services they may use is up to [`Restricted`].
    #[must_use]
    pub fn allowing(mut self, allowed: AllowedClients) -> Self {
        if let Listener::Tls(_, tls) = &mut self.listener {
            tls.allowed = allowed;
        }
        self
    }

    /// Where it is, with the port that was free.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Lets clients in until `stop`; calls that are under way then may end.
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
        // A client that does not let go of its connection does not keep us.
        let patience = async move {
            match stopped.await {
                Ok(()) => tokio::time::sleep(LIMIT).await,
                Err(_) => std::future::pending().await,
            }
        };
        let layer = tower::layer::layer_fn(|inner| Limited { inner, limit: LIMIT });
        let (clients, _file) = self.listener.clients();
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

impl Listener {
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

/// Clients that have shown a certificate. One that is slow keeps no other waiting.
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
    warn!(%error, "nobody can be let in");
    tokio::time::sleep(PAUSE).await;
}

async fn admit(stream: TcpStream, from: SocketAddr, tls: Arc<Tls>) -> Option<Connection> {
    let config = match tls.files.load(&tls.allowed) {
        Ok(config) => config,
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            warn!(%from, %error, why, "a client is turned away");
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
