//! Accepting connections, and letting go of them.

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

use super::DoorError;

/// Long enough for connections to end and give their file descriptors back.
const PAUSE_WHEN_OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// A port that is ours and where nobody answers yet.
#[derive(Debug)]
pub(super) struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// A port where somebody answers. Dropped, it accepts nothing more, and its connections end
/// after the answer they are in the middle of.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    /// Nothing is ever sent: that it is gone is the message.
    _open: watch::Sender<()>,
}

/// Tells a connection that its door closes.
#[derive(Debug, Clone)]
pub(super) struct Closing(watch::Receiver<()>);

impl Closing {
    /// Something to hold while the door is open, and what tells of its end.
    pub(super) fn pair() -> (watch::Sender<()>, Self) {
        let (open, closing) = watch::channel(());
        (open, Self(closing))
    }

    /// Returns when the door is closed.
    pub(super) async fn closed(&mut self) {
        let _ = self.0.changed().await;
    }
}

impl Bound {
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, DoorError> {
        let failed = |source| DoorError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Gives each connection to `serve`, in a task of its own.
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

/// Answers the requests of one connection until either side ends it. An error of `answer` ends
/// it without an answer.
pub(super) async fn converse<Stream, Answer, Answering, Answered, Broken>(
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
    // How a conversation failed is the client's to notice: breaking them is a purpose here.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = closing.closed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
