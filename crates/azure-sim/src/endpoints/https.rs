//! HTTPS on loopback, for clients in other processes.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::cut::{Broken, Counted, CutBody, Flushes};
use super::listener::{Bound, Closing, Listener, serve_connection};
use super::{ServeError, authority, deliver};
use crate::azure::Delivery;
use crate::exchange::ArmError;
use crate::simulator::Simulator;

/// ARM accepts 4 MB; customData and scripts are far smaller.
const LARGEST_BODY: usize = 8 * 1024 * 1024;

/// HTTPS on a loopback address, with a certificate authority of its own.
///
/// # Guarantees
/// A dropped answer closes the connection without a byte. A cut answer announces the length of the whole
/// body, sends less and closes. To a client, both look like a network failure.
///
/// When dropped, the server accepts no more connections and discards answers that wait for the clock.
#[derive(Debug)]
pub struct HttpsServer {
    listener: Listener,
}

impl HttpsServer {
    /// Listens on `address`, where port 0 is any free one, and writes the CA certificate for clients to
    /// `certificate`.
    ///
    /// The file is written last: if another process already uses the address, its file stays unchanged.
    pub async fn start(
        simulator: Simulator,
        address: SocketAddr,
        certificate: &Path,
    ) -> Result<Self, ServeError> {
        let bound = Bound::bind(address).await?;
        let (tls, authority) = authority::tls_config()?;
        std::fs::write(certificate, authority).map_err(|source| ServeError::WriteCertificate {
            path: certificate.to_owned(),
            source,
        })?;
        let acceptor = TlsAcceptor::from(tls);
        let listener = bound.serve(move |stream, closing| {
            serve(simulator.clone(), acceptor.clone(), stream, closing)
        });
        Ok(Self { listener })
    }

    /// The URL, such as `https://127.0.0.1:8443`.
    pub fn endpoint(&self) -> String {
        format!("https://{}", self.listener.address())
    }
}

async fn serve(
    simulator: Simulator,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mut closing: Closing,
) {
    let _ = stream.set_nodelay(true);
    let accepted = tokio::select! {
        accepted = acceptor.accept(stream) => accepted,
        () = closing.closed() => return,
    };
    // A client that does not trust the certificate reports that itself.
    let Ok(stream) = accepted else { return };
    let (stream, flushes) = Counted::new(stream);
    serve_connection(stream, closing.clone(), |request| {
        answer(simulator.clone(), closing.clone(), flushes.clone(), request)
    })
    .await;
}

type Answered = Response<Either<Full<Bytes>, CutBody>>;

async fn answer(
    simulator: Simulator,
    mut closing: Closing,
    flushes: Flushes,
    request: Request<Incoming>,
) -> Result<Answered, Broken> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => return Ok(too_large()),
        Err(_) => return Err(Broken),
    };
    let request = Request::from_parts(head, body);
    let delivery = tokio::select! {
        delivery = deliver(&simulator, &request) => delivery,
        () = closing.closed() => Delivery::Dropped,
    };
    match delivery {
        Delivery::Response(response) => Ok(response.map(|body| Either::Left(Full::new(body)))),
        Delivery::Cut(response, count) => Ok(cut(response, count, flushes)),
        Delivery::Dropped => Err(Broken),
    }
}

fn too_large() -> Answered {
    let message =
        format!("The request content size exceeds the maximum size of '{LARGEST_BODY}' bytes.");
    ArmError::new(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), "RequestContentTooLarge", message)
        .into_reply()
        .into_response()
        .map(|body| Either::Left(Full::new(body)))
}

/// Announces the whole response and cuts it after `count` bytes.
fn cut(response: Response<Bytes>, count: usize, flushes: Flushes) -> Answered {
    let (mut head, body) = response.into_parts();
    head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    let part = body.slice(..count.min(body.len()));
    Response::from_parts(head, Either::Right(CutBody::new(part, flushes)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_long_body_arrives_up_to_the_cut() {
        let (mut client, stream) = tokio::io::duplex(64 * 1024);
        let (_open, closing) = Closing::pair();
        let (stream, flushes) = Counted::new(stream);
        let served = tokio::spawn(serve_connection(stream, closing, move |_| {
            let whole = Response::new(vec![b'x'; 1_000_000].into());
            std::future::ready(Ok::<_, Broken>(cut(whole, 900_000, flushes.clone())))
        }));
        client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
        let mut came = Vec::new();
        client.read_to_end(&mut came).await.unwrap();
        served.await.unwrap();
        let text = String::from_utf8(came).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-length: 1000000"), "{head}");
        assert_eq!(body.len(), 900_000);
    }
}
