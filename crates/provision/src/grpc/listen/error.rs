//! Errors of the listener.

use std::io;
use std::path::PathBuf;

use super::address::Address;
use super::tls::{AUTHORITY_OPTION, CERTIFICATE_OPTION, KEY_OPTION, TlsError};

/// Why listening on an address failed.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address to bind.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process listens on the socket.
    #[error("cannot listen on {path}: another process already does")]
    Occupied {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket; the file stays unchanged.
    #[error("cannot listen on {path}: it exists and is no socket")]
    NotASocket {
        /// The path of the file.
        path: PathBuf,
    },
    /// A port has no TLS files.
    #[error(
        "cannot listen on {address}: only a unix socket does without --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION}"
    )]
    Open {
        /// The address with a port.
        address: Address,
    },
    /// A unix socket has TLS files.
    #[error(
        "{address} is a unix socket, on which --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION} have no meaning"
    )]
    Unused {
        /// The address of the socket.
        address: Address,
    },
    /// The TLS files cannot be used.
    #[error("cannot listen with TLS")]
    Tls(#[from] TlsError),
}

/// The server stopped accepting clients.
#[derive(Debug, thiserror::Error)]
#[error("the gRPC listener failed")]
pub struct ServeError {
    pub(super) source: tonic::transport::Error,
}
