//! The control endpoint for tests and people: time, faults, and the record of requests and state.
//!
//! | request | answer |
//! |---|---|
//! | `GET /clock` | `{now, pace, jumpedMilliseconds}` |
//! | `GET /clock?changedFrom=N` | the same, as soon as `jumpedMilliseconds` is not N |
//! | `POST /clock` `{"advance": "15m"}` | the same, after the jump and all events that were due |
//! | `GET /resources` | every resource |
//! | `GET /leaks` | resources that no other resource uses and none will delete |
//! | `GET /nodes` | the machines that have joined |
//! | `GET /faults` | the active faults, each with its ID and the number of injections |
//! | `POST /faults` `{"on": .., "fault": ..}` | 201 and the ID of the new fault |
//! | `DELETE /faults/{id}` | 204 |
//! | `GET /requests` | the requests so far |
//! | `GET /requests?since=N` | the requests with a higher number |
//! | `GET /counts` | the number of requests of each kind |
//! | `GET /log` | requests and changes of state, as text |
//!
//! Errors have the form `{"error": the problem, "expected": a correct value}`.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ServeError;
use super::listener::{Bound, Closing, Listener, serve_connection};
use crate::fault::FaultRule;
use crate::scenario::Span;
use crate::simulator::Simulator;

const LARGEST_BODY: usize = 1024 * 1024;

const EXPECTED_CLOCK: &str = r#"{"advance": "15m"}"#;
const EXPECTED_FAULT: &str = r#"{"on": {"method": "GET", "pathContains": "virtualMachines", "times": 1}, "fault": {"throttle": {"retryAfter": 5}}}"#;
const EXPECTED_PATH: &str =
    "/clock, /resources, /leaks, /nodes, /faults, /faults/{id}, /requests, /counts or /log";

/// Plain HTTP on a loopback address.
#[derive(Debug)]
pub struct ControlServer {
    listener: Listener,
}

impl ControlServer {
    /// Listens on `address`; port 0 is any free one.
    pub async fn start(simulator: Simulator, address: SocketAddr) -> Result<Self, ServeError> {
        let listener = Bound::bind(address).await?.serve(move |stream, closing| {
            let simulator = simulator.clone();
            async move {
                let _ = stream.set_nodelay(true);
                serve_connection(stream, closing.clone(), |request| {
                    answer(simulator.clone(), closing.clone(), request)
                })
                .await;
            }
        });
        Ok(Self { listener })
    }

    /// The URL, such as `http://127.0.0.1:8001`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listener.address())
    }
}

async fn answer(
    simulator: Simulator,
    mut closing: Closing,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let reply = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => {
            let body = body.to_bytes();
            let asked = ControlRequest {
                method: &head.method,
                path: head.uri.path(),
                query: head.uri.query(),
            };
            tokio::select! {
                reply = asked.reply(&simulator, &body) => reply,
                () = closing.closed() => Err(ControlError::closing()),
            }
        }
        Err(error) => Err(ControlError::new(
            StatusCode::BAD_REQUEST,
            error.to_string(),
            "a body of at most 1 MiB",
        )),
    };
    Ok(reply.unwrap_or_else(ControlError::reply).map(Full::new))
}

/// A request without its body.
struct ControlRequest<'a> {
    method: &'a Method,
    path: &'a str,
    query: Option<&'a str>,
}

type Reply = Result<Response<Bytes>, ControlError>;

impl ControlRequest<'_> {
    async fn reply(&self, simulator: &Simulator, body: &[u8]) -> Reply {
        let segments: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        match segments.as_slice() {
            ["clock"] if self.method == Method::POST => {
                let Advance { advance } = parse(body, EXPECTED_CLOCK)?;
                simulator.advance(advance.0);
                Ok(clock(simulator))
            }
            ["clock"] => {
                self.allow(&[Method::GET, Method::POST])?;
                if let Some(known) = self.number("changedFrom")? {
                    jump_from(simulator, known).await;
                }
                Ok(clock(simulator))
            }
            ["faults"] if self.method == Method::POST => {
                let rule: FaultRule = parse(body, EXPECTED_FAULT)?;
                let id = simulator.with(|azure| azure.arm_fault(rule));
                Ok(as_json(StatusCode::CREATED, &json!({ "id": id })))
            }
            ["faults"] => {
                self.allow(&[Method::GET, Method::POST])?;
                Ok(simulator.with(|azure| {
                    let faults: Vec<Value> = azure
                        .faults()
                        .map(|(id, rule, struck)| json!({ "id": id, "struck": struck, "on": rule.on, "fault": rule.fault }))
                        .collect();
                    as_json(StatusCode::OK, &faults)
                }))
            }
            ["faults", id] => {
                self.allow(&[Method::DELETE])?;
                let known =
                    id.parse().is_ok_and(|id| simulator.with(|azure| azure.disarm_fault(id)));
                if known {
                    Ok(empty(StatusCode::NO_CONTENT))
                } else {
                    Err(ControlError::no_fault(id))
                }
            }
            [what] => {
                let reply = self.read(what, simulator)?;
                self.allow(&[Method::GET])?;
                Ok(reply)
            }
            _ => Err(ControlError::no_path(self.path)),
        }
    }

    /// Paths that only support GET.
    fn read(&self, what: &str, simulator: &Simulator) -> Reply {
        let since: u64 = self.number("since")?.unwrap_or_default();
        simulator.with(|azure| match what {
            "resources" => Ok(as_json(StatusCode::OK, &azure.resources())),
            "leaks" => {
                let leaks: Vec<_> =
                    azure.resources().into_iter().filter(|resource| resource.orphan).collect();
                Ok(as_json(StatusCode::OK, &leaks))
            }
            "nodes" => Ok(as_json(StatusCode::OK, &azure.nodes())),
            "requests" => {
                let requests = azure.journal().requests();
                let first = requests.partition_point(|request| request.number <= since);
                Ok(as_json(StatusCode::OK, &requests[first..]))
            }
            "counts" => Ok(as_json(StatusCode::OK, &azure.journal().counts())),
            "log" => Ok(with_type(
                StatusCode::OK,
                "text/plain; charset=utf-8",
                azure.journal().text().to_owned().into(),
            )),
            _ => Err(ControlError::no_path(self.path)),
        })
    }

    fn allow(&self, methods: &[Method]) -> Result<(), ControlError> {
        if methods.contains(self.method) {
            Ok(())
        } else {
            Err(ControlError::method(self.method, self.path, methods))
        }
    }

    fn number<Number: std::str::FromStr>(
        &self,
        name: &str,
    ) -> Result<Option<Number>, ControlError> {
        let Some((_, value)) = self
            .query
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
        else {
            return Ok(None);
        };
        let value = percent_decode_str(value).decode_utf8_lossy();
        value.parse().map(Some).map_err(|_| {
            ControlError::new(
                StatusCode::BAD_REQUEST,
                format!("{name} is `{value}`"),
                "a whole number",
            )
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance: Span,
}

fn clock(simulator: &Simulator) -> Response<Bytes> {
    let clock = simulator.clock();
    as_json(
        StatusCode::OK,
        &json!({
            "now": clock.now(),
            "pace": clock.pace().to_string(),
            "jumpedMilliseconds": jumped(simulator),
        }),
    )
}

fn jumped(simulator: &Simulator) -> i64 {
    i64::try_from(simulator.clock().jumped().as_millis()).unwrap_or(i64::MAX)
}

/// Waits until the sum of all jumps differs from `known` milliseconds.
async fn jump_from(simulator: &Simulator, known: i64) {
    let mut changes = simulator.changes();
    while jumped(simulator) == known && changes.changed().await.is_ok() {}
}

fn parse<'a, Wanted: Deserialize<'a>>(
    body: &'a [u8],
    expected: &'static str,
) -> Result<Wanted, ControlError> {
    serde_json::from_slice(body).map_err(|error| {
        ControlError::new(
            StatusCode::BAD_REQUEST,
            error.to_string(),
            format!("a body such as {expected}"),
        )
    })
}

fn as_json(status: StatusCode, value: &(impl Serialize + ?Sized)) -> Response<Bytes> {
    let text = serde_json::to_vec(value)
        .expect("what the simulator keeps has string keys and no failing serializer");
    with_type(status, "application/json", text.into())
}

fn with_type(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// A request that is answered with an error.
#[derive(Debug)]
struct ControlError {
    status: StatusCode,
    error: String,
    expected: String,
}

impl ControlError {
    fn new(status: StatusCode, error: String, expected: impl Into<String>) -> Self {
        Self { status, error, expected: expected.into() }
    }

    fn no_path(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is nothing at {path}"), EXPECTED_PATH)
    }

    fn no_fault(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("there is no fault {id}"),
            "an id that GET /faults lists",
        )
    }

    fn method(method: &Method, path: &str, methods: &[Method]) -> Self {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("{path} does not take {method}"),
            names.join(" or "),
        )
    }

    fn closing() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the simulator is ending".to_owned(),
            "nothing more",
        )
    }

    fn reply(self) -> Response<Bytes> {
        as_json(self.status, &json!({ "error": self.error, "expected": self.expected }))
    }
}
