//! Queries the health of kubelet: the only network request of a wait, and only to this machine.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::clock::network;
use crate::host::paths::Root;
use crate::host::system::files;
use crate::settings_file::{self, AGENT_KEYS};

/// The address of kubelet's health endpoint.
const KUBELET: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10248);

/// An answer from the same machine does not take longer.
const LIMIT: Duration = Duration::from_secs(1);

/// The answer of kubelet's health endpoint: `ok`, or another answer, or the error.
pub(crate) fn healthz(root: &Root) -> Option<String> {
    Some(ask(address(root)?).unwrap_or_else(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => "timeout".to_owned(),
        other => other.to_string(),
    }))
}

/// Under a root, only an address in the root's own settings is queried, and only on this machine.
fn address(root: &Root) -> Option<SocketAddr> {
    if root.directory().is_none() {
        return Some(KUBELET);
    }
    let text = files::head(&root.settings(), 64 * 1024).ok()?;
    let settings = settings_file::read(&root.settings(), &text, &AGENT_KEYS).ok()?;
    let address = settings.get("endpoints.kubelet")?.parse().ok();
    address.filter(|address: &SocketAddr| address.ip().is_loopback())
}

fn ask(address: SocketAddr) -> std::io::Result<String> {
    let limit = network(LIMIT);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    let read = stream.take(1024).read_to_end(&mut answer);
    // A received answer counts, however the connection ended.
    if answer.is_empty() {
        read?;
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    Ok(match status {
        "200" => "ok".to_owned(),
        "" => "no answer".to_owned(),
        other => format!("status {}", other.chars().take(8).collect::<String>()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn kubelet_that_says(answer: &'static str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        let settings = format!("[endpoints]\nkubelet = \"{}\"\n", listener.local_addr().unwrap());
        files::write(&root.settings(), settings.as_bytes()).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        });
        let said = healthz(&root);
        server.join().unwrap();
        said
    }

    #[test]
    fn kubelet_is_well_only_if_it_says_so() {
        assert_eq!(kubelet_that_says("HTTP/1.0 200 OK\r\n\r\nok").as_deref(), Some("ok"));
        let ill = kubelet_that_says("HTTP/1.0 500 Internal\r\n\r\n");
        assert_eq!(ill.as_deref(), Some("status 500"));
    }

    #[test]
    fn only_this_machine_is_ever_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        assert_eq!(address(&root), None, "under a root nothing is asked unless it is told");
        files::write(&root.settings(), b"[endpoints]\nkubelet = \"192.0.2.1:10248\"\n").unwrap();
        assert_eq!(address(&root), None);
        assert_eq!(address(&Root::new(None)), Some(KUBELET));
    }
}
