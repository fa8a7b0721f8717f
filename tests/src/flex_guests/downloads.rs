//! Serves the downloads of machines, over plain HTTP on loopback.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// All requests of machines are shorter.
const LONGEST_REQUEST: u64 = 16 * 1024;

/// Serves files until this value is dropped.
#[derive(Debug)]
pub(crate) struct Downloads {
    port: u16,
    server: JoinHandle<()>,
}

impl Downloads {
    /// Serves these files by their names.
    pub(crate) async fn serve(files: BTreeMap<String, Vec<u8>>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listen for downloads")?;
        let port = listener.local_addr().context("the port of the downloads")?.port();
        let files = Arc::new(files);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let files = files.clone();
                // The client repeats a broken request.
                tokio::spawn(async move { answer(stream, &files).await.ok() });
            }
        });
        Ok(Self { port, server })
    }

    /// The URL of a file.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    let mut lines = BufReader::new((&mut stream).take(LONGEST_REQUEST)).lines();
    let request = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let name = request.split([' ', '?']).nth(1).unwrap_or_default().trim_start_matches('/');
    let (status, body) = match files.get(name) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b""[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}
