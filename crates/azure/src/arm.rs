//! The client of Azure Resource Manager (ARM).

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

const USER_AGENT: &str = concat!("bringup/", env!("CARGO_PKG_VERSION"));

/// The client. Clones share budget, queue and token.
///
/// # Guarantees
/// One call is one request, except where further pages or ranges follow. The client repeats no request. It
/// sends the token only to the endpoint's host. The client and its clones together exceed no known limit of
/// Azure.
#[derive(Clone)]
pub struct Arm {
    endpoint: Endpoint,
    pipeline: Pipeline,
    transport: Arc<dyn HttpClient>,
    reads: Reads,
    clock: Arc<dyn Clock>,
}

impl Arm {
    /// A client that uses half of the requests that ARM allows an identity.
    pub fn new(
        endpoint: Endpoint,
        credential: Arc<dyn TokenCredential>,
        transport: Arc<dyn HttpClient>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with_limits(endpoint, credential, transport, clock, Limits::default())
    }

    /// A client with these limits.
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

    /// The endpoint of the requests.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The queue of requests, with its counters.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }
}

/// Without the transport, whose `Debug` output could contain secrets.
impl fmt::Debug for Arm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let management = self.endpoint.management().as_str();
        formatter.debug_struct("Arm").field("management", &management).finish_non_exhaustive()
    }
}

/// Replaces the user agent of `azure_core` with ours.
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
