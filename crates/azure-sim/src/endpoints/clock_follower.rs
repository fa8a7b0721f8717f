//! A clock for programs under test that follows the simulated clock.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why the clock of a control endpoint cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The address has no host and port.
    #[error(
        "`{0}` is not the address of a control endpoint: expected one such as http://127.0.0.1:8001"
    )]
    Address(String),
    /// Nothing listens at the address.
    #[error("cannot connect to the control endpoint at {address}")]
    Connect {
        /// The address of the control endpoint.
        address: String,
        /// The underlying error.
        source: std::io::Error,
    },
    /// The request failed.
    #[error("cannot ask the control endpoint for its clock")]
    Ask {
        /// The underlying error.
        source: hyper::Error,
    },
    /// The server at the address is not a control endpoint.
    #[error("the control endpoint answered {status} where its clock was expected")]
    Answer {
        /// The HTTP status of the answer.
        status: StatusCode,
    },
    /// The answer is not a clock.
    #[error("the control endpoint's answer is not a clock")]
    Parse {
        /// The underlying error.
        source: serde_json::Error,
    },
}

/// Wall time, plus every jump of the simulated clock. Next to a simulator whose clock is `real`,
/// both show the same time.
///
/// # Flow
/// One request waits at the control endpoint for the next jump; its answer moves this clock.
///
/// # Caveats
/// A jump shows here a moment after it shows in the simulator. When the simulator exits, the clock
/// keeps the jumps it knows and follows the wall clock.
#[derive(Debug)]
pub struct FollowedClock {
    jumped: watch::Receiver<SignedDuration>,
    follower: JoinHandle<()>,
}

impl FollowedClock {
    /// Follows the clock of the control endpoint at `address`, such as `http://127.0.0.1:8001`.
    /// On return, all jumps so far are known.
    pub async fn follow(address: &str) -> Result<Self, FollowError> {
        let mut control = Control::connect(address).await?;
        let known = control.clock("/clock".to_owned()).await?;
        let (sender, jumped) = watch::channel(known.jumped());
        let follower = tokio::spawn(async move {
            let mut known = known;
            while let Ok(next) =
                control.clock(format!("/clock?changedFrom={}", known.jumped_milliseconds)).await
            {
                known = next;
                sender.send_replace(known.jumped());
            }
        });
        Ok(Self { jumped, follower })
    }

    /// The current simulated time.
    pub fn now(&self) -> Timestamp {
        Timestamp::now().saturating_add(*self.jumped.borrow()).unwrap_or(Timestamp::MAX)
    }

    /// How far this clock is ahead of the wall clock.
    pub fn jumped(&self) -> SignedDuration {
        *self.jumped.borrow()
    }

    /// Waits until the clock reaches `moment`, by jumps or by itself.
    pub async fn reach(&self, moment: Timestamp) {
        let mut jumped = self.jumped.clone();
        loop {
            jumped.mark_unchanged();
            let missing = Duration::try_from(self.now().duration_until(moment)).unwrap_or_default();
            if missing.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(missing) => {}
                Ok(()) = jumped.changed() => {}
            }
        }
    }
}

impl Drop for FollowedClock {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClockReading {
    jumped_milliseconds: i64,
}

impl ClockReading {
    fn jumped(&self) -> SignedDuration {
        SignedDuration::from_millis(self.jumped_milliseconds)
    }
}

/// One connection to a control endpoint.
struct Control {
    host: String,
    sender: SendRequest<Empty<Bytes>>,
}

impl Control {
    async fn connect(address: &str) -> Result<Self, FollowError> {
        let host = address
            .parse::<Uri>()
            .ok()
            .and_then(|uri| uri.authority().cloned())
            .filter(|authority| authority.port().is_some())
            .ok_or_else(|| FollowError::Address(address.to_owned()))?
            .to_string();
        let stream = TcpStream::connect(&host)
            .await
            .map_err(|source| FollowError::Connect { address: address.to_owned(), source })?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|source| FollowError::Ask { source })?;
        // The task ends when the sender is dropped.
        tokio::spawn(connection);
        Ok(Self { host, sender })
    }

    async fn clock(&mut self, path: String) -> Result<ClockReading, FollowError> {
        let failed = |source| FollowError::Ask { source };
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = path.parse().map_err(|_| FollowError::Address(path))?;
        if let Ok(host) = self.host.parse() {
            request.headers_mut().insert(header::HOST, host);
        }
        self.sender.ready().await.map_err(failed)?;
        let response = self.sender.send_request(request).await.map_err(failed)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
        if status != StatusCode::OK {
            return Err(FollowError::Answer { status });
        }
        serde_json::from_slice(&body).map_err(|source| FollowError::Parse { source })
    }
}
