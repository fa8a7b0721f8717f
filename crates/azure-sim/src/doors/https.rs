//! The door for everybody else: HTTPS on loopback.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::cut::{Broken, Counted, CutBody, Flushes};
use super::listener::{Bound, Closing, Listener, converse};
use super::{DoorError, authority, deliver};
use crate::azure::Delivery;
use crate::exchange::ArmError;
use crate::simulator::Simulator;

/// ARM takes 4 MB; customData and scripts stay far below.
const LARGEST_BODY: usize = 8 * 1024 * 1024;

/// HTTPS on a loopback address, with a certificate authority of its own.
///
/// # Guarantees
/// A dropped answer closes the connection without a byte; a cut one announces the length of the
/// whole body, sends less and closes. Both look to a client as if the network had failed.
///
/// Dropped, the door takes no more connections; answers that wait for the clock do not come.
#[derive(Debug)]
pub struct HttpsDoor {
    listener: Listener,
}

impl HttpsDoor {
    /// Opens the door at `address`, where port 0 is any free one, and writes the certificate that
    /// clients have to trust to `certificate`.
    ///
    /// The file is written last, so that an address that is taken leaves its owner's file alone.
    pub async fn open(
        simulator: Simulator,
        address: SocketAddr,
        certificate: &Path,
    ) -> Result<Self, DoorError> {
        let bound = Bound::bind(address).await?;
        let (tls, authority) = authority::certify()?;
        std::fs::write(certificate, authority).map_err(|source| DoorError::WriteCertificate {
            path: certificate.to_owned(),
            source,
        })?;
        let acceptor = TlsAcceptor::from(tls);
        let listener = bound.serve(move |stream, closing| {
            serve(simulator.clone(), acceptor.clone(), stream, closing)
        });
        Ok(Self { listener })
    }

    /// Where it is: `https://127.0.0.1:8443`.
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
    // A client that does not trust us says so itself.
    let Ok(stream) = accepted else { return };
    let (stream, flushes) = Counted::new(stream);
    converse(stream, closing.clone(), |request| {
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

/// The same answer, announced whole and broken off after `count` bytes.
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
        let served = tokio::spawn(converse(stream, closing, move |_| {
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
