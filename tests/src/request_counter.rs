//! A client of the API server that counts what goes through it.

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

/// What went through a client. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Counted(Arc<Mutex<Counts>>);

/// So many.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Writes by method and the kind that was written.
    pub writes: BTreeMap<String, u64>,
    /// The most writes that were under way at once.
    pub writes_at_once: usize,
    /// Reads, without watches.
    pub reads: u64,
    /// The most reads that were under way at once.
    pub reads_at_once: usize,
    /// What the API server did not allow, by method and path.
    pub denied: BTreeMap<String, u64>,
    under_way: (usize, usize),
}

impl Counts {
    /// All writes.
    pub fn all_writes(&self) -> u64 {
        self.writes.values().sum()
    }
}

impl Counted {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose requests are counted.
    pub fn client(&self, config: Config) -> Result<Client> {
        let builder = ClientBuilder::try_from(config).context("make a client that counts")?;
        Ok(builder.with_layer(self).build())
    }

    /// What went through so far.
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn begins(&self, request: &Request<Body>) -> Option<UnderWay> {
        let mut counts = self.lock();
        let is_write = request.method() != Method::GET;
        if is_write {
            let what = format!("{} {}", request.method(), kind(request.uri().path()));
            *counts.writes.entry(what).or_default() += 1;
            counts.under_way.0 += 1;
            counts.writes_at_once = counts.writes_at_once.max(counts.under_way.0);
        } else if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return None;
        } else {
            counts.reads += 1;
            counts.under_way.1 += 1;
            counts.reads_at_once = counts.reads_at_once.max(counts.under_way.1);
        }
        Some(UnderWay { counted: self.clone(), is_write })
    }
}

/// The last word of a path that is no name: `nodeclaims/status` of `…/nodeclaims/a/status`.
fn kind(path: &str) -> &'static str {
    let kinds = ["bootstrapreports", "nodeclaims", "events", "leases", "selfsubjectaccessreviews"];
    kinds.into_iter().find(|kind| path.contains(kind)).unwrap_or("others")
}

struct UnderWay {
    counted: Counted,
    is_write: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.counted.lock();
        if self.is_write {
            counts.under_way.0 -= 1;
        } else {
            counts.under_way.1 -= 1;
        }
    }
}

impl<S> Layer<S> for Counted {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, counted: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counting<S> {
    inner: S,
    counted: Counted,
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
        let under_way = self.counted.begins(&request);
        let what = format!("{} {}", request.method(), request.uri().path());
        let counted = self.counted.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            drop(under_way);
            if answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::FORBIDDEN) {
                *counted.lock().denied.entry(what).or_default() += 1;
            }
            answer
        }
        .boxed()
    }
}
