//! The ways in: for requests, in process and over HTTPS; for whoever runs the simulation, the
//! control endpoint. And the one way out, to real programs that stand in for a bootstrap.

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
pub use control::ControlDoor;
pub use https::HttpsDoor;
pub use in_process::InProcess;
pub use programs::ProgramRunner;

use crate::azure::{Answer, Delivery};
use crate::simulator::Simulator;

/// A door that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The certificates could not be made.
    #[error("cannot make certificates")]
    Certificates {
        /// Why not.
        source: rcgen::Error,
    },
    /// TLS does not take the certificates.
    #[error("cannot set up TLS")]
    Tls {
        /// Why not.
        source: rustls::Error,
    },
    /// The certificate that clients have to trust could not be written.
    #[error("cannot write the CA certificate to {}", path.display())]
    WriteCertificate {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What the simulator answers, when the simulated moment of its arrival has come.
async fn deliver(simulator: &Simulator, request: &http::Request<Bytes>) -> Delivery {
    let Answer { delivery, delay } = simulator.answer(request);
    if !delay.is_zero() {
        let clock = simulator.clock();
        let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
        clock.reach(clock.now().saturating_add(delay).unwrap_or(Timestamp::MAX)).await;
    }
    delivery
}
