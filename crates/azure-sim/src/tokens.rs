//! The token endpoints that Azure's identity libraries call, and the check of the tokens that the endpoints
//! return.
//!
//! A token has the form `sim.<expiry in unix seconds>.<subject>`, so that a test can write one. Secrets and
//! assertions are required, as Entra requires them, but not compared.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use crate::exchange::{ArmError, Call, Reply};
use crate::seed::Seed;

/// The lifetime of a token. A client checks it against the wall clock, ARM against the simulated clock: a
/// day, which is also the lifetime for managed identities in Azure, leaves room for jumps.
const LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// Characters of a token's subject that need no encoding.
const SUBJECT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The caller. ARM counts requests by caller, and error messages name the caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Principal(String);

impl Principal {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why ARM rejects a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request has no bearer token.
    Missing,
    /// The token is a token of the simulator and has expired.
    Expired { expiry: i64, now: i64 },
}

impl Refusal {
    /// 401 with the challenge that client libraries expect.
    pub(crate) fn into_reply(self) -> Reply {
        let (code, message) = match self {
            Self::Missing => (
                "AuthenticationFailed",
                "Authentication failed. The 'Authorization' header is missing.".to_owned(),
            ),
            Self::Expired { expiry, now } => (
                "ExpiredAuthenticationToken",
                format!(
                    "The access token expiry UTC time '{}' is earlier than current UTC time '{}'.",
                    american(expiry),
                    american(now)
                ),
            ),
        };
        let challenge = format!(
            "Bearer authorization_uri=\"https://login.microsoftonline.com/\", \
             error=\"invalid_token\", error_description=\"{message}\""
        );
        ArmError::new(401, code, message).into_reply().with("www-authenticate", challenge)
    }
}

/// Identifies the sender of an `Authorization` header.
///
/// Other bearer tokens are accepted too: equal tokens are the same principal.
pub(crate) fn check(now: Timestamp, authorization: Option<&str>) -> Result<Principal, Refusal> {
    let token = authorization
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .filter(|token| !token.is_empty())
        .ok_or(Refusal::Missing)?;
    let Some((expiry, subject)) = parse(token) else {
        return Ok(Principal(Seed::new(0).of(token).uuid()));
    };
    let now = now.as_second();
    if expiry <= now { Err(Refusal::Expired { expiry, now }) } else { Ok(Principal(subject)) }
}

/// Answers a request to Entra or to a managed identity endpoint; `None` for other requests.
pub(crate) fn endpoint(now: Timestamp, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let path = request.uri().path().to_ascii_lowercase();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let reply = match (request.method(), segments.as_slice()) {
        (&Method::POST, [_, "oauth2", "v2.0", "token"]) => {
            client_credentials(now, &Form::parse(request.body()))
                .unwrap_or_else(|refused| refused.reply(now))
        }
        (&Method::GET, [_, "v2.0", ".well-known", "openid-configuration"]) => {
            // The tenant keeps its case: libraries compare it with the configured one.
            let tenant =
                request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
            openid_configuration(&Call::new(request).base, tenant)
        }
        (&Method::GET, ["common", "discovery", "instance"]) => {
            instance_discovery(&Call::new(request))
        }
        (&Method::GET, ["metadata", "identity", "oauth2", "token"]) => {
            let asked = request.headers().get("metadata").is_some_and(|value| value == "true");
            managed_identity(now, &Call::new(request), asked, 400)
        }
        (&Method::GET, ["msi", "token"]) => {
            let known = request.headers().contains_key("x-identity-header");
            managed_identity(now, &Call::new(request), known, 401)
        }
        _ => return None,
    };
    let mut response = reply.into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Some(response)
}

/// The client credentials grant, with a secret or with an assertion. Workload identities use
/// assertions.
fn client_credentials(now: Timestamp, form: &Form) -> Result<Reply, Refused> {
    match form.need("grant_type")? {
        "client_credentials" => {}
        other => return Err(Refused::grant(other)),
    }
    let client = form.need("client_id")?;
    if form.get("client_assertion").is_some() {
        form.need("client_assertion_type")?;
    } else if form.get("client_secret").is_none() {
        return Err(Refused::NO_PROOF);
    }
    let scope = form.need("scope")?;
    if !scope.split(' ').any(|scope| scope.ends_with("/.default")) {
        return Err(Refused::scope(scope));
    }
    Ok(Reply::json(
        200,
        json!({
            "token_type": "Bearer",
            "expires_in": LIFETIME_SECONDS,
            "ext_expires_in": LIFETIME_SECONDS,
            "access_token": mint(now, client),
        }),
    ))
}

/// The answer of IMDS and of App Service. `vouched` is true if the request has the header that protects
/// against server-side request forgery; without the header, `otherwise` is the status.
fn managed_identity(now: Timestamp, call: &Call<'_>, vouched: bool, otherwise: u16) -> Reply {
    let refused = |status: u16, description: &str| {
        Reply::json(status, json!({ "error": "invalid_request", "error_description": description }))
    };
    if !vouched {
        return refused(otherwise, "Required metadata or identity header not specified");
    }
    let Some(resource) = call.query("resource").filter(|resource| !resource.is_empty()) else {
        return refused(400, "Required query variable 'resource' is missing");
    };
    let client = ["client_id", "object_id", "msi_res_id", "mi_res_id"]
        .into_iter()
        .find_map(|name| call.query(name))
        .unwrap_or("system-assigned");
    // Numbers are strings here, as in Azure.
    Reply::json(
        200,
        json!({
            "access_token": mint(now, client),
            "client_id": client,
            "expires_in": LIFETIME_SECONDS.to_string(),
            "expires_on": (now.as_second() + LIFETIME_SECONDS).to_string(),
            "not_before": now.as_second().to_string(),
            "resource": resource,
            "token_type": "Bearer",
        }),
    )
}

fn openid_configuration(base: &str, tenant: &str) -> Reply {
    Reply::json(
        200,
        json!({
            "issuer": format!("{base}/{tenant}/v2.0"),
            "authorization_endpoint": format!("{base}/{tenant}/oauth2/v2.0/authorize"),
            "token_endpoint": format!("{base}/{tenant}/oauth2/v2.0/token"),
            "device_authorization_endpoint": format!("{base}/{tenant}/oauth2/v2.0/devicecode"),
            "jwks_uri": format!("{base}/{tenant}/discovery/v2.0/keys"),
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }),
    )
}

fn instance_discovery(call: &Call<'_>) -> Reply {
    let tenant = call
        .query("authorization_endpoint")
        .and_then(|endpoint| endpoint.split('/').nth(3))
        .unwrap_or("common");
    let host = call.base.trim_start_matches("https://");
    Reply::json(
        200,
        json!({
            "tenant_discovery_endpoint": format!("{}/{tenant}/v2.0/.well-known/openid-configuration", call.base),
            "api-version": "1.1",
            "metadata": [{ "preferred_network": host, "preferred_cache": host, "aliases": [host] }],
        }),
    )
}

fn mint(now: Timestamp, subject: &str) -> String {
    let expiry = now.as_second() + LIFETIME_SECONDS;
    format!("sim.{expiry}.{}", utf8_percent_encode(subject, SUBJECT))
}

fn parse(token: &str) -> Option<(i64, String)> {
    let (expiry, subject) = token.strip_prefix("sim.")?.split_once('.')?;
    Some((expiry.parse().ok()?, percent_decode_str(subject).decode_utf8_lossy().into_owned()))
}

/// A timestamp in the format that ARM uses only in this message.
fn american(second: i64) -> String {
    let at = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    at.strftime("%-m/%-d/%Y %-I:%M:%S %p").to_string()
}

/// A form body.
struct Form(Vec<(String, String)>);

impl Form {
    fn parse(body: &[u8]) -> Self {
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        let body = String::from_utf8_lossy(body);
        Self(
            body.split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    fn need(&self, name: &'static str) -> Result<&str, Refused> {
        self.get(name).ok_or_else(|| Refused {
            status: 400,
            error: "invalid_request",
            number: 900_144,
            description: format!(
                "The request body must contain the following parameter: '{name}'."
            )
            .into(),
        })
    }
}

/// An error in the format of Entra.
struct Refused {
    status: u16,
    error: &'static str,
    number: u32,
    description: std::borrow::Cow<'static, str>,
}

impl Refused {
    const NO_PROOF: Self = Self {
        status: 401,
        error: "invalid_client",
        number: 7_000_218,
        description: std::borrow::Cow::Borrowed(
            "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
        ),
    };

    fn grant(grant: &str) -> Self {
        Self {
            status: 400,
            error: "unsupported_grant_type",
            number: 70_003,
            description: format!("The app requested an unsupported grant type '{grant}'.").into(),
        }
    }

    fn scope(scope: &str) -> Self {
        Self {
            status: 400,
            error: "invalid_scope",
            number: 1_002_012,
            description: format!(
                "The provided value for scope {scope} is not valid. Client credential flows must \
                 have a scope value with /.default suffixed to the resource identifier."
            )
            .into(),
        }
    }

    fn reply(self, now: Timestamp) -> Reply {
        let stamp = now.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
        let body: Value = json!({
            "error": self.error,
            "error_description": format!("AADSTS{}: {} Timestamp: {stamp}", self.number, self.description),
            "error_codes": [self.number],
            "timestamp": stamp,
        });
        Reply::json(self.status, body)
    }
}

#[cfg(test)]
mod tests;
