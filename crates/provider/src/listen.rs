//! Doors: a unix socket for us alone, or a port with TLS 1.3 on which both sides show a certificate.

mod address;
mod connection;
mod limit;
mod socket;
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{FuturesUnordered, Stream, StreamExt as _, unfold};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic::transport::Server;
use tracing::{debug, warn};

pub use self::address::{Address, AddressError};
use self::connection::Connection;
use self::limit::Limited;
use self::socket::SocketFile;
pub use self::tls::{AUTHORITY_OPTION, CERTIFICATE_OPTION, KEY_OPTION, TlsError, TlsFiles};

/// How long any call may take. Karpenter's provider does not wait longer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The largest message that is taken. Services are to be told; it is what they begin with.
pub const LARGEST: usize = 4 << 20;
/// How many may be on the way in at once; the others wait.
const AT_THE_DOOR: usize = 64;
/// How often a quiet client is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);
/// The pause when nobody can be let in, as when files have run out.
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
    /// Somebody else is there.
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

/// Nobody is let in any more.
#[derive(Debug, thiserror::Error)]
#[error("the door has failed")]
pub struct ServeError {
    source: tonic::transport::Error,
}

/// A place where clients come in. Its address is taken, and nobody is let in yet.
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
    Tls(TcpListener, TlsFiles),
}

impl Door {
    /// Takes the address; a port needs the files of TLS, which are tried at once.
    pub async fn bind(address: Address, tls: Option<TlsFiles>) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Bind { address: address.to_string(), source };
        match (&address, tls) {
            (Address::Unix(path), None) => {
                let (listener, file) = socket::listen(path)?;
                Ok(Self { listener: Listener::Unix(listener, file), address })
            }
            (Address::Tcp { host, port }, Some(files)) => {
                files.load()?;
                let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(failed)?;
                let port = listener.local_addr().as_ref().map_or(*port, SocketAddr::port);
                let address = Address::Tcp { host: host.clone(), port };
                Ok(Self { listener: Listener::Tls(listener, files), address })
            }
            (Address::Unix(_), Some(_)) => Err(ListenError::Unused { address }),
            (Address::Tcp { .. }, None) => Err(ListenError::Open { address }),
        }
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
            Self::Tls(listener, files) => (Box::pin(tls_clients(listener, files)), None),
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

/// Clients that have shown a certificate. One that is slow keeps nobody else.
fn tls_clients(
    listener: TcpListener,
    files: TlsFiles,
) -> impl Stream<Item = Result<Connection, io::Error>> + Send {
    let coming = FuturesUnordered::new();
    unfold((listener, files, coming), async |(listener, files, mut coming)| {
        loop {
            tokio::select! {
                accepted = listener.accept(), if coming.len() < AT_THE_DOOR => match accepted {
                    Ok((stream, from)) => coming.push(admit(stream, from, files.clone())),
                    Err(error) => pause(&error).await,
                },
                Some(admitted) = coming.next() => if let Some(connection) = admitted {
                    return Some((Ok(connection), (listener, files, coming)));
                }
            }
        }
    })
}

async fn pause(error: &io::Error) {
    warn!(%error, "nobody can be let in");
    tokio::time::sleep(PAUSE).await;
}

async fn admit(stream: TcpStream, from: SocketAddr, files: TlsFiles) -> Option<Connection> {
    let config = match files.load() {
        Ok(config) => config,
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            warn!(%from, %error, why, "a client is turned away");
            return None;
        }
    };
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(LIMIT, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => Some(Connection::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            debug!(%from, %error, "a client has shown no certificate that is accepted");
            None
        }
        Err(_) => {
            debug!(%from, "a client has shown no certificate in time");
            None
        }
    }
}
