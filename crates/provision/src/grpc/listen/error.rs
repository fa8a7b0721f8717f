//! Errors of the listener.

use std::io;
use std::path::PathBuf;

use super::address::Address;
use super::tls::{AUTHORITY_OPTION, CERTIFICATE_OPTION, KEY_OPTION, TlsError};

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Another process listens there.
    #[error("cannot listen on {path}: another process already does")]
    Occupied {
        /// The socket.
        path: PathBuf,
    },
    /// The path exists and is no socket; it is left alone.
    #[error("cannot listen on {path}: it exists and is no socket")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// A port has no TLS files.
    #[error(
        "cannot listen on {address}: only a unix socket does without --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION}"
    )]
    Open {
        /// The address.
        address: Address,
    },
    /// A unix socket has TLS files.
    #[error(
        "{address} is a unix socket, on which --{CERTIFICATE_OPTION}, --{KEY_OPTION} and --{AUTHORITY_OPTION} have no meaning"
    )]
    Unused {
        /// The address.
        address: Address,
    },
    /// The TLS files cannot be used.
    #[error("cannot listen with TLS")]
    Tls(#[from] TlsError),
}

/// The server accepts no more clients.
#[derive(Debug, thiserror::Error)]
#[error("the gRPC listener failed")]
pub struct ServeError {
    pub(super) source: tonic::transport::Error,
}
