//! Accepts connections and closes them.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::ServeError;

/// Long enough for connections to end and release their file descriptors.
const PAUSE_WHEN_OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// A bound port that does not accept connections yet.
#[derive(Debug)]
pub(super) struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// A port that accepts connections. When dropped, it accepts no more, and its connections end after
/// the response they are sending.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    /// Nothing is ever sent: dropping the sender is the signal.
    _open: watch::Sender<()>,
}

/// Signals a connection that its server is shutting down.
#[derive(Debug, Clone)]
pub(super) struct Closing(watch::Receiver<()>);

impl Closing {
    /// The guard to hold while the server runs, and the signal of its end.
    pub(super) fn pair() -> (watch::Sender<()>, Self) {
        let (open, closing) = watch::channel(());
        (open, Self(closing))
    }

    /// Returns when the server shuts down.
    pub(super) async fn closed(&mut self) {
        let _ = self.0.changed().await;
    }
}

impl Bound {
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Passes each connection to `serve`, in its own task.
    pub(super) fn serve<Serve, Serving>(self, serve: Serve) -> Listener
    where
        Serve: Fn(TcpStream, Closing) -> Serving + Send + 'static,
        Serving: Future<Output = ()> + Send + 'static,
    {
        let (open, mut closing) = Closing::pair();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    accepted = self.listener.accept() => match accepted {
                        Ok((stream, _)) => drop(tokio::spawn(serve(stream, closing.clone()))),
                        Err(_) => tokio::time::sleep(PAUSE_WHEN_OUT_OF_DESCRIPTORS).await,
                    },
                    () = closing.closed() => return,
                }
            }
        });
        Listener { address: self.address, _open: open }
    }
}

impl Listener {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers the requests of one connection until either side closes it. An error of `answer` closes
/// it without a response.
pub(super) async fn serve_connection<Stream, Answer, Answering, Answered, Broken>(
    stream: Stream,
    mut closing: Closing,
    answer: Answer,
) where
    Stream: AsyncRead + AsyncWrite + Unpin,
    Answer: Fn(http::Request<Incoming>) -> Answering,
    Answering: Future<Output = Result<http::Response<Answered>, Broken>>,
    Answered: Body<Data = Bytes> + 'static,
    Answered::Error: Into<Box<dyn Error + Send + Sync>>,
    Broken: Into<Box<dyn Error + Send + Sync>>,
{
    let connection =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
    let mut connection = pin!(connection);
    // Errors are ignored: injecting broken connections is a purpose of the simulator, and the
    // client sees them.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = closing.closed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
