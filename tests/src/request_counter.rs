//! A client of the API server that counts its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tower::{Layer, Service};

/// The counted requests of a client. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct RequestCounter(Arc<Mutex<Counts>>);

/// The number of requests by kind.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Writes by method and kind.
    pub writes: BTreeMap<String, u64>,
    /// The largest number of concurrent writes.
    pub writes_at_once: usize,
    /// Reads, without watches.
    pub reads: u64,
    /// The largest number of concurrent reads.
    pub reads_at_once: usize,
    /// Requests that the API server denied, by method and path.
    pub denied: BTreeMap<String, u64>,
    in_flight: (usize, usize),
}

impl Counts {
    /// The number of all writes.
    pub fn all_writes(&self) -> u64 {
        self.writes.values().sum()
    }
}

impl RequestCounter {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose requests are counted.
    pub fn client(&self, config: Config) -> Result<Client> {
        let builder = ClientBuilder::try_from(config).context("make a client that counts")?;
        Ok(builder.with_layer(self).build())
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn begins(&self, request: &Request<Body>) -> Option<InFlight> {
        let mut counts = self.lock();
        let is_write = request.method() != Method::GET;
        if is_write {
            let what = format!("{} {}", request.method(), kind(request.uri().path()));
            *counts.writes.entry(what).or_default() += 1;
            counts.in_flight.0 += 1;
            counts.writes_at_once = counts.writes_at_once.max(counts.in_flight.0);
        } else if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return None;
        } else {
            counts.reads += 1;
            counts.in_flight.1 += 1;
            counts.reads_at_once = counts.reads_at_once.max(counts.in_flight.1);
        }
        Some(InFlight { counter: self.clone(), is_write })
    }
}

/// The last part of a path that is not a name: `nodeclaims/status` for `…/nodeclaims/a/status`.
fn kind(path: &str) -> &'static str {
    let kinds = ["bootstrapreports", "nodeclaims", "events", "leases", "selfsubjectaccessreviews"];
    kinds.into_iter().find(|kind| path.contains(kind)).unwrap_or("others")
}

struct InFlight {
    counter: RequestCounter,
    is_write: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.counter.lock();
        if self.is_write {
            counts.in_flight.0 -= 1;
        } else {
            counts.in_flight.1 -= 1;
        }
    }
}

impl<S> Layer<S> for RequestCounter {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, counter: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counting<S> {
    inner: S,
    counter: RequestCounter,
}

impl<S, B> Service<Request<Body>> for Counting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let in_flight = self.counter.begins(&request);
        let what = format!("{} {}", request.method(), request.uri().path());
        let counter = self.counter.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            drop(in_flight);
            if answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::FORBIDDEN) {
                *counter.lock().denied.entry(what).or_default() += 1;
            }
            answer
        }
        .boxed()
    }
}
