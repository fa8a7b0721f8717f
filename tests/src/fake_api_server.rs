//! A fake API server in memory: it stores claims and reports, and a test triggers the events of its watches.
//! For tests in which thousands of claims wait and only the test moves the clock: a real API server would
//! take too long.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::BootstrapReport;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The API server. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct FakeApiServer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    claims: BTreeMap<String, Value>,
    reports: BTreeMap<String, Value>,
    version: u64,
    requests: u64,
    /// The open watches, each with its resource.
    watching: Vec<(String, mpsc::UnboundedSender<Bytes>)>,
}

impl FakeApiServer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client of this API server.
    pub fn client(&self) -> Client {
        let fake_api_server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake_api_server = fake_api_server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                Ok::<_, kube::Error>(fake_api_server.lock().answer(&head, &body))
            }
        });
        Client::new(service, "default")
    }

    /// Stores a claim of this class that was launched now.
    pub fn launch(&self, name: &str, class: &str, provider_id: &str, now: Timestamp) {
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut state = self.lock();
        state.version += 1;
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": name, "uid": format!("uid-of-{name}"), "generation": 1,
                "resourceVersion": state.version.to_string(), "creationTimestamp": at,
                "labels": { "karpenter.sh/nodepool": "default" },
            },
            "spec": { "nodeClassRef": { "group": "karpenter.azure.com", "kind": class, "name": "default" } },
            "status": { "providerID": provider_id, "conditions": [{
                "type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": at,
            }] },
        });
        state.claims.insert(name.to_owned(), claim);
    }

    /// Sends the Event with which Karpenter reports that a claim's VM failed.
    pub fn signal(&self, claim: &str, now: Timestamp) {
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = json!({ "type": "ADDED", "object": {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": format!("{claim}.signal"), "namespace": "default", "resourceVersion": "1", "creationTimestamp": at },
            "reason": "AsyncProvisioningError",
            "message": "Failed to register: ",
            "involvedObject": { "kind": "NodeClaim", "name": claim, "uid": format!("uid-of-{claim}") },
        } });
        let line = Bytes::from(format!("{event}\n"));
        let state = self.lock();
        for (path, watcher) in &state.watching {
            if path == "/api/v1/events" {
                // A closed watch receives nothing.
                let _ = watcher.unbounded_send(line.clone());
            }
        }
    }

    /// The reports that were written.
    pub fn reports(&self) -> Vec<BootstrapReport> {
        let state = self.lock();
        let read = |report: &Value| serde_json::from_value(report.clone()).ok();
        state.reports.values().filter_map(read).collect()
    }

    /// The number of answered requests, which stands still while nothing is due.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }
}

impl State {
    fn answer(&mut self, head: &http::request::Parts, body: &[u8]) -> Answer {
        self.requests += 1;
        let path = head.uri.path();
        let query = head.uri.query().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let named = |kind: &str| {
            let at = parts.iter().position(|part| *part == kind)?;
            parts.get(at + 1).copied()
        };
        if query.contains("watch=true") {
            return self.watch(path);
        }
        match (&head.method, named("nodeclaims"), named("bootstrapreports")) {
            (&Method::PATCH, Some(name), _) => self.apply(name, &body),
            (&Method::GET, Some(name), _) => found(self.claims.get(name)),
            (&Method::GET, _, Some(name)) => found(self.reports.get(name)),
            (&Method::POST | &Method::PUT, ..) if path.contains("/bootstrapreports") => {
                self.keep(body)
            }
            (&Method::GET, ..) if path.ends_with("/nodeclaims") => list(self.claims.values()),
            (&Method::GET, ..) if path.ends_with("/bootstrapreports") => {
                list(self.reports.values())
            }
            (&Method::GET, ..) if is_list(path) => list(std::iter::empty()),
            (&Method::GET, ..) => found(None),
            _ => said(StatusCode::OK, &body),
        }
    }

    fn watch(&mut self, path: &str) -> Answer {
        let (sender, lines) = mpsc::unbounded();
        self.watching.push((path.to_owned(), sender));
        let frames = lines.map(|line| Ok::<_, Infallible>(http_body::Frame::data(line)));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    /// A server-side apply, as far as bringup's conditions need it.
    fn apply(&mut self, name: &str, body: &Value) -> Answer {
        self.version += 1;
        let version = self.version.to_string();
        let Some(claim) = self.claims.get_mut(name) else { return found(None) };
        claim["metadata"]["resourceVersion"] = version.into();
        let applied = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if let Some(conditions) = claim["status"]["conditions"].as_array_mut() {
            conditions.retain(|held| applied.iter().all(|ours| ours["type"] != held["type"]));
            conditions.extend(applied);
        }
        said(StatusCode::OK, claim)
    }

    fn keep(&mut self, mut report: Value) -> Answer {
        self.version += 1;
        report["metadata"]["resourceVersion"] = self.version.to_string().into();
        let name = report["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let answer = said(StatusCode::OK, &report);
        self.reports.insert(name, report);
        answer
    }
}

fn is_list(path: &str) -> bool {
    ["/nodes", "/events", "/certificatesigningrequests"].iter().any(|kind| path.ends_with(kind))
}

fn list<'a>(items: impl Iterator<Item = &'a Value>) -> Answer {
    let items: Vec<&Value> = items.collect();
    said(StatusCode::OK, &json!({ "metadata": { "resourceVersion": "1" }, "items": items }))
}

fn found(object: Option<&Value>) -> Answer {
    match object {
        Some(object) => said(StatusCode::OK, object),
        None => said(
            StatusCode::NOT_FOUND,
            &json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404 }),
        ),
    }
}

fn said(status: StatusCode, body: &Value) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync());
    *response.status_mut() = status;
    response
}
