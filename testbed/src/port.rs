//! A reserved loopback port.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::net::TcpSocket;

use crate::{Error, Result};

/// Holds a loopback port for a program that binds it with `SO_REUSEPORT` too.
///
/// The socket is bound and never listens. The kernel gives its port neither to a process that asks
/// for any free one, nor to a process that asks for this one without sharing it, so there is no
/// moment between choosing a port and using it in which another control plane could take it.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    number: u16,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves `port`, or any free one.
    pub(crate) fn new(port: Option<u16>) -> Result<Self> {
        let port = port.unwrap_or(0);
        let failed = |source| Error::Port { port, source };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));

        if port != 0 {
            // A shared bind would also succeed if another control plane used the same port.
            TcpListener::bind(address).map_err(failed)?;
        }
        let socket = TcpSocket::new_v4().map_err(failed)?;
        socket.set_reuseport(true).map_err(failed)?;
        socket.bind(address).map_err(failed)?;
        let number = socket.local_addr().map_err(failed)?.port();
        Ok(Self { number, _socket: socket })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_given_only_once() {
        let first = ReservedPort::new(None).unwrap();
        let error = ReservedPort::new(Some(first.number())).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot listen on 127.0.0.1:{}", first.number()));
    }

    #[test]
    fn many_reservations_get_different_ports() {
        let ports: Vec<_> = (0..50).map(|_| ReservedPort::new(None).unwrap()).collect();
        let mut numbers: Vec<_> = ports.iter().map(ReservedPort::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
    }
}
