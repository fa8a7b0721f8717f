//! Downloads with the real curl, from a server on this machine.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use join_common::Plain;

/// Serves the files of a folder, until the test ends.
fn serve(folder: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &folder);
        }
    });
    port
}

fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    let name = request.split(['/', '?', ' ']).nth(2).unwrap_or_default();
    let (status, kind, body) = match (name, fs::read(folder.join(name))) {
        ("page", _) => ("200 OK", "text/html", b"<html>Sign in</html>".to_vec()),
        (_, Ok(body)) => ("200 OK", "application/octet-stream", body),
        (_, Err(_)) => ("404 Not Found", "text/html", b"<html>no</html>".to_vec()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// A machine with the real curl; `None` if curl is not installed.
fn with_curl() -> Option<(Plain, u16)> {
    if !Path::new("/usr/bin/curl").exists() {
        return None;
    }
    let mut plain = Plain::new();
    plain.stub("/usr/bin/curl", "exec env -u http_proxy PATH=/usr/bin:/bin curl \"$@\"");
    let port = serve(plain.machine.at("/served"));
    for artifact in plain.config["artifacts"].as_object_mut().unwrap().values_mut() {
        let url = artifact["url"].as_str().unwrap().to_owned();
        artifact["url"] =
            url.replace("https://dl.example", &format!("http://127.0.0.1:{port}")).into();
    }
    plain.config["limits"]["containerd"] = 30.into();
    Some((plain, port))
}

#[test]
fn with_the_real_curl_everything_is_downloaded() {
    let Some((plain, _)) = with_curl() else { return };
    let ended = plain.join();
    plain.assert_joined(&ended);
    plain.assert_silent(Path::new("/nothing"), &ended);
}

#[test]
fn test_55_with_the_real_curl_failures_have_their_causes() {
    let Some((mut plain, port)) = with_curl() else { return };
    // No server listens on this port any more.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (url, cause, words) in [
        (format!("http://127.0.0.1:{port}/absent"), "ArtifactMissing", "HTTP 404"),
        (format!("http://127.0.0.1:{port}/page"), "ProxyMisconfigured", "a web page"),
        (format!("http://127.0.0.1:{port}/kubelet"), "DownloadInterrupted", "checksum"),
        (format!("http://127.0.0.1:{closed}/runc"), "EgressBlocked", "cannot be reached (curl 7)"),
        ("http://no-such-host.invalid/runc".to_owned(), "DnsFailure", "curl 6"),
    ] {
        plain.config["artifacts"]["runc"]["url"] = url.into();
        plain.config["limits"]["containerd"] = 20.into();
        let ended = plain.join();
        plain.assert_failed(&ended, 194, cause, words);
    }
}
