//! The client of Azure's resource manager.

mod blob;
mod exchange;
mod reads;
mod writes;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::TokenCredential;
use azure_core::http::policies::auth::BearerTokenAuthorizationPolicy;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{
    ClientOptions, Context, HttpClient, Pipeline, Request, RetryOptions, Transport,
};

use crate::budget::Limits;
use crate::clock::Clock;
use crate::cloud::Endpoint;
use crate::reads::Reads;

pub use writes::{Condition, PollError, Verb, Write};

/// How we introduce ourselves.
const USER_AGENT: &str = concat!("bringup/", env!("CARGO_PKG_VERSION"));

/// The client. Clones share budget, queue and token.
///
/// # Guarantees
/// One call is one request, except where a page or a range has to follow; nothing is retried. The
/// token goes to the endpoint's host and nowhere else. No limit of Azure's that is known is
/// exceeded by this client and its clones.
#[derive(Clone)]
pub struct Arm {
    endpoint: Endpoint,
    pipeline: Pipeline,
    transport: Arc<dyn HttpClient>,
    reads: Reads,
    clock: Arc<dyn Clock>,
}

impl Arm {
    /// A client with half of what ARM allows an identity.
    pub fn new(
        endpoint: Endpoint,
        credential: Arc<dyn TokenCredential>,
        transport: Arc<dyn HttpClient>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with_limits(endpoint, credential, transport, clock, Limits::default())
    }

    /// A client with limits of its own.
    pub fn with_limits(
        endpoint: Endpoint,
        credential: Arc<dyn TokenCredential>,
        transport: Arc<dyn HttpClient>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        let authorize = BearerTokenAuthorizationPolicy::new(credential, [endpoint.scope()]);
        let options = ClientOptions {
            transport: Some(Transport::new(transport.clone())),
            retry: RetryOptions::none(),
            ..ClientOptions::default()
        };
        let pipeline = Pipeline::new(
            Some("bringup"),
            Some(env!("CARGO_PKG_VERSION")),
            options,
            Vec::new(),
            vec![Arc::new(authorize), Arc::new(Introduce)],
            None,
        );
        let reads = Reads::new(limits, clock.clone());
        Self { endpoint, pipeline, transport, reads, clock }
    }

    /// Where requests go.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The queue before the requests, with its counters.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }
}

/// A transport may show anything; so it is not shown.
impl fmt::Debug for Arm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let management = self.endpoint.management().as_str();
        formatter.debug_struct("Arm").field("management", &management).finish_non_exhaustive()
    }
}

/// Sets our user agent in place of the one of `azure_core`.
#[derive(Debug)]
struct Introduce;

#[async_trait]
impl Policy for Introduce {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        request.insert_header("user-agent", USER_AGENT);
        next[0].send(context, request, &next[1..]).await
    }
}
