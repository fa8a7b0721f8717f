//! The edges of the simulator: requests arrive in process or over HTTPS, tests and people use the
//! control endpoint, and real programs run in place of a VM's bootstrap.

mod any_token;
mod authority;
mod clock_follower;
mod control;
mod cut;
mod https;
mod in_process;
mod listener;
mod programs;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

pub use any_token::AnyToken;
pub use clock_follower::{FollowError, FollowedClock};
pub use control::ControlServer;
pub use https::HttpsServer;
pub use in_process::InProcess;
pub use programs::ProgramRunner;

use crate::azure::{Answer, Delivery};
use crate::simulator::Simulator;

/// An endpoint that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use, or does not belong to this host.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The underlying error.
        source: io::Error,
    },
    /// The certificates could not be created.
    #[error("cannot create certificates")]
    Certificates {
        /// The underlying error.
        source: rcgen::Error,
    },
    /// rustls rejects the certificates.
    #[error("cannot set up TLS")]
    Tls {
        /// The underlying error.
        source: rustls::Error,
    },
    /// The CA certificate for clients could not be written.
    #[error("cannot write the CA certificate to {}", path.display())]
    WriteCertificate {
        /// The path of the file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
}

/// The simulator's answer, returned when the simulated time of its arrival has come.
async fn deliver(simulator: &Simulator, request: &http::Request<Bytes>) -> Delivery {
    let Answer { delivery, delay } = simulator.answer(request);
    if !delay.is_zero() {
        let clock = simulator.clock();
        let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
        clock.reach(clock.now().saturating_add(delay).unwrap_or(Timestamp::MAX)).await;
    }
    delivery
}
