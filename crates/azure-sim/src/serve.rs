//! The path of a request: faults, authorization, rate limits, then the handler of the resource.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use jiff::SignedDuration;
use serde_json::json;

use crate::azure::{Answer, Azure, Delivery};
use crate::exchange::{ArmError, Body, Call, Reply};
use crate::fault::{Fault, Struck};
use crate::journal::Recorded;
use crate::resources::later;
use crate::route::{Id, Target, place};
use crate::throttle::{Draw, Policy, compute_refusal};
use crate::tokens;

/// The last answer to each read, for faults that return stale answers.
#[derive(Debug, Default)]
pub(crate) struct Answered(BTreeMap<String, Response<Bytes>>);

/// Tests with stale reads use far fewer paths.
const KEPT_ANSWERS: usize = 4096;

impl Answered {
    fn keep(&mut self, path: &str, response: &Response<Bytes>) {
        if self.0.len() >= KEPT_ANSWERS && !self.0.contains_key(path) {
            self.0.clear();
        }
        self.0.insert(path.to_owned(), response.clone());
    }
}

impl Azure {
    /// Answers one request at the current moment.
    pub fn handle(&mut self, request: &Request<Bytes>) -> Answer {
        let call = Call::new(request);
        let struck = Struck {
            method: call.method.as_str(),
            path: &call.path,
            elapsed: self.began.duration_until(self.now).as_millis().unsigned_abs(),
        };
        let fault = self.faults.strike(&struck, self.seed);
        if let Some(Fault::ClockJump(span)) = &fault {
            let callers_now =
                self.now - SignedDuration::try_from(self.ahead).unwrap_or(SignedDuration::ZERO);
            self.ahead += span.0;
            self.advance_to(callers_now);
        }
        let at = self.now;
        let (delivery, delay) = self.deliver(&call, request, fault.as_ref());
        let response = match &delivery {
            Delivery::Response(response) | Delivery::Cut(response, _) => Some(response),
            Delivery::Dropped => None,
        };
        self.journal.request(Recorded {
            number: 0,
            at,
            method: call.method.to_string(),
            path: without_signature(call.path_and_query),
            operation: Target::parse(&call.path).map_or("Other", |target| target.call(call.method)),
            status: response.map(|response| response.status().as_u16()),
            error: response.filter(|response| !response.status().is_success()).and_then(error_code),
            fault: fault.as_ref().map(fault_name),
        });
        Answer { delivery, delay }
    }

    fn deliver(
        &mut self,
        call: &Call<'_>,
        request: &Request<Bytes>,
        fault: Option<&Fault>,
    ) -> (Delivery, Duration) {
        let whole = |response| (Delivery::Response(response), Duration::ZERO);
        match fault {
            None | Some(Fault::ClockJump(_)) => whole(self.serve(call, request)),
            Some(Fault::DropBefore) => (Delivery::Dropped, Duration::ZERO),
            Some(Fault::DropAfter) => {
                self.serve(call, request);
                (Delivery::Dropped, Duration::ZERO)
            }
            Some(Fault::StatusBefore(status)) => whole(platform_error(*status)),
            Some(Fault::StatusAfter(status)) => {
                self.serve(call, request);
                whole(platform_error(*status))
            }
            Some(Fault::Throttle { retry_after, as_date, policy }) => {
                whole(self.throttled(*retry_after, *as_date, policy.as_deref()))
            }
            Some(Fault::Slow(span)) => (Delivery::Response(self.serve(call, request)), span.0),
            Some(Fault::Stale) => whole(self.stale(call)),
            Some(Fault::Answer { status, headers, body }) => whole(fixed(*status, headers, body)),
            Some(Fault::CutBody(most)) => {
                (Delivery::Cut(self.serve(call, request), *most), Duration::ZERO)
            }
        }
    }

    fn serve(&mut self, call: &Call<'_>, request: &Request<Bytes>) -> Response<Bytes> {
        if let Some(response) = tokens::endpoint(self.now, request) {
            return response;
        }
        let target = Target::parse(&call.path);
        if let Some(Target::Blob(path)) = &target {
            return self.get_blob(call, path).into_response();
        }
        let authorization =
            request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let mut reply = match tokens::check(self.now, authorization) {
            Err(refusal) => refusal.into_reply(),
            Ok(principal) => {
                self.admit(call, target, principal.as_str()).unwrap_or_else(ArmError::into_reply)
            }
        };
        let number = self.journal.requests().len();
        let request_id = self.seed.of(&format!("request/{number}")).uuid();
        reply.headers.push(("x-ms-request-id", request_id.clone()));
        reply.headers.push(("x-ms-correlation-request-id", request_id));
        let response = reply.into_response();
        if call.method == Method::GET {
            self.answered.keep(call.path_and_query, &response);
        }
        response
    }

    /// Checks authorization, resource group and rate limits before a handler runs.
    fn admit(
        &mut self,
        call: &Call<'_>,
        target: Option<Target>,
        principal: &str,
    ) -> Result<Reply, ArmError> {
        check_api_version(call)?;
        let (subscription, group) = place(&call.path);
        self.check_group(group)?;
        let Some(target) = target else {
            let message = format!(
                "The resource type could not be found in the namespace for path '{}'.",
                call.path
            );
            return Err(ArmError::new(404, "InvalidResourceType", message).at_gateway());
        };
        let mut rates = Vec::new();
        if self.scenario.quirks.throttling {
            let is_operation = matches!(target, Target::Operation { .. });
            let draw = Draw {
                principal,
                subscription: subscription.unwrap_or_default(),
                method: call.method,
                resource: &self.counted_resource(&target),
                policy: Policy::of(call.method, &target),
                front_door: !matches!(target, Target::ResourceGraph)
                    && (!is_operation || self.scenario.quirks.operation_reads_count),
            };
            match self.throttle.draw(self.now, &draw) {
                Ok(headers) => rates = headers,
                Err(refusal) => return Ok(*refusal),
            }
        }
        let mut reply = self.dispatch(call, target).unwrap_or_else(ArmError::into_reply);
        reply.headers.extend(rates);
        Ok(reply)
    }

    fn check_group(&self, group: Option<&str>) -> Result<(), ArmError> {
        let known = &self.scenario.resource_groups;
        match group {
            Some(group)
                if !known.is_empty()
                    && !known.iter().any(|known| known.eq_ignore_ascii_case(group)) =>
            {
                let message = format!("Resource group '{group}' could not be found.");
                Err(ArmError::new(404, "ResourceGroupNotFound", message).at_gateway())
            }
            _ => Ok(()),
        }
    }

    /// The resource whose rate limit applies to a call.
    fn counted_resource(&self, target: &Target) -> String {
        match target {
            Target::Vm(id)
            | Target::VmInstanceView(id)
            | Target::Extension(id, _)
            | Target::Extensions(id)
            | Target::BootDiagnostics(id)
            | Target::RunCommandAction(id)
            | Target::Restart(id)
            | Target::RunCommand(id, _)
            | Target::RunCommands(id)
            | Target::ScaleSet(id)
            | Target::ScaleSetInstanceView(id) => id.key().0,
            Target::Operation { id, .. } => self
                .operations
                .get(&crate::operation::OperationId(id.clone()))
                .map(|operation| operation.subject.0.clone())
                .unwrap_or_default(),
            _ => String::new(),
        }
    }

    fn dispatch(&mut self, call: &Call<'_>, target: Target) -> Result<Reply, ArmError> {
        match (call.method.as_str(), target) {
            ("PUT", Target::Vm(id)) => self.put_vm(call, id),
            ("GET", Target::Vm(id)) => self.get_vm(call, &id),
            ("DELETE", Target::Vm(id)) => self.delete_vm(call, &id),
            ("GET", Target::VmInstanceView(id)) => self.get_instance_view(call, &id),
            ("GET", Target::Vms(scope)) => Ok(self.list_vms(call, &scope)),
            ("PUT", Target::Extension(vm, name)) => self.put_extension(call, &vm, &name),
            ("GET", Target::Extension(vm, name)) => self.get_extension(call, &vm, &name),
            ("DELETE", Target::Extension(vm, name)) => Ok(self.delete_extension(call, &vm, &name)),
            ("GET", Target::Extensions(vm)) => self.list_extensions(call, &vm),
            ("POST", Target::BootDiagnostics(vm)) => self.post_boot_diagnostics(call, &vm),
            ("POST", Target::RunCommandAction(vm)) => self.post_run_command(call, &vm),
            ("POST", Target::Restart(vm)) => self.post_restart(call, &vm),
            ("PUT", Target::RunCommand(vm, name)) => self.put_run_command(call, &vm, &name),
            ("GET", Target::RunCommand(vm, name)) => self.get_run_command(call, &vm, &name),
            ("GET", Target::RunCommands(vm)) => self.list_run_commands(call, &vm),
            ("DELETE", Target::RunCommand(vm, name)) => Ok(self.delete_run_command(&vm, &name)),
            ("PUT", Target::ScaleSet(id)) => self.put_scale_set(call, id),
            ("GET", Target::ScaleSet(id)) => self.get_scale_set(&id),
            ("DELETE", Target::ScaleSet(id)) => Ok(self.delete_scale_set(call, &id)),
            ("GET", Target::ScaleSetInstanceView(id)) => self.get_scale_set_instance_view(&id),
            ("GET", Target::ScaleSetVms(id)) => self.list_scale_set_vms(call, &id),
            ("GET", Target::ScaleSets(scope)) => Ok(self.list_scale_sets(call, &scope)),
            ("PUT", Target::Nic(id)) => self.put_nic(call, id),
            ("GET", Target::Nic(id)) => self.get_nic(&id),
            ("DELETE", Target::Nic(id)) => self.delete_nic(call, &id),
            ("GET", Target::Nics(scope)) => Ok(self.list_nics(call, &scope)),
            ("PUT", Target::PublicIp(id)) => self.put_public_ip(call, id),
            ("GET", Target::PublicIp(id)) => self.get_public_ip(&id),
            ("DELETE", Target::PublicIp(id)) => self.delete_public_ip(call, &id),
            ("GET", Target::PublicIps(scope)) => Ok(self.list_public_ips(call, &scope)),
            ("PUT", Target::Disk(id)) => self.put_disk(call, id),
            ("GET", Target::Disk(id)) => self.get_disk(&id),
            ("DELETE", Target::Disk(id)) => self.delete_disk(call, &id),
            ("GET", Target::Disks(scope)) => Ok(self.list_disks(call, &scope)),
            ("GET", Target::Subnet(id)) => self.get_subnet(&id),
            ("GET", Target::VirtualNetwork(id)) => self.get_virtual_network(&id),
            ("GET", Target::ImageVersions(image)) => self.get_image_versions(&image),
            ("GET", Target::Skus) => Ok(self.get_skus(call)),
            ("GET", Target::Usages { location, .. }) => Ok(self.get_usages(&location)),
            ("GET", Target::Operation { id, results }) => self.get_operation(call, &id, results),
            ("GET", Target::ActivityLog(subscription)) => {
                self.get_activity_log(call, &subscription)
            }
            ("POST", Target::ResourceGraph) => self.post_resource_graph(call),
            ("PUT", Target::Machine(id)) => self.put_machine(call, id),
            ("GET", Target::Machine(id)) => self.get_machine(&id),
            ("DELETE", Target::Machine(id)) => Ok(self.delete_machine(&id)),
            ("GET", Target::Machines(pool)) => Ok(self.list_machines(&pool)),
            ("GET" | "PUT", Target::ResourceGroup(scope)) => Ok(resource_group(&scope)),
            (method, _) => {
                let message =
                    format!("The requested resource does not support http method '{method}'.");
                Err(ArmError::new(405, "MethodNotAllowed", message))
            }
        }
    }

    /// The previous answer to the same read; 404 or an empty list if there is none.
    fn stale(&self, call: &Call<'_>) -> Response<Bytes> {
        let nothing = || match Target::parse(&call.path) {
            Some(
                Target::Vms(_)
                | Target::Nics(_)
                | Target::Disks(_)
                | Target::PublicIps(_)
                | Target::ScaleSets(_),
            ) => Reply::list(Vec::new(), None),
            _ => match Id::parse(&call.path) {
                Some(id) => crate::resources::not_found(&id).into_reply(),
                None => ArmError::new(
                    404,
                    "NotFound",
                    "The entity was not found in this Azure location.",
                )
                .into_reply(),
            },
        };
        self.answered
            .0
            .get(call.path_and_query)
            .cloned()
            .unwrap_or_else(|| nothing().into_response())
    }

    fn throttled(
        &self,
        retry_after: Option<u64>,
        as_date: bool,
        policy: Option<&str>,
    ) -> Response<Bytes> {
        let mut reply = if let Some(policy) = policy {
            compute_refusal(policy, 36, 0)
        } else {
            let message = "Number of requests for this subscription exceeded.";
            ArmError::new(429, "SubscriptionRequestsThrottled", message).into_reply()
        };
        reply.headers.retain(|(name, _)| *name != "retry-after");
        if let Some(seconds) = retry_after {
            let value = if as_date {
                let at = later(self.now, Duration::from_secs(seconds));
                at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
            } else {
                seconds.to_string()
            };
            reply = reply.with("retry-after", value);
        }
        reply.into_response()
    }
}

fn resource_group(scope: &crate::route::Scope) -> Reply {
    let name = scope.group.as_deref().unwrap_or_default();
    Reply::json(
        200,
        json!({
            "id": format!("/subscriptions/{}/resourceGroups/{name}", scope.subscription),
            "name": name,
            "type": "Microsoft.Resources/resourceGroups",
            "location": "eastus",
            "properties": { "provisioningState": "Succeeded" },
        }),
    )
}

fn check_api_version(call: &Call<'_>) -> Result<(), ArmError> {
    match call.query("api-version") {
        None => Err(ArmError::new(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )),
        Some(version) if !is_api_version(version) => {
            let message = format!("The api-version '{version}' is invalid.");
            Err(ArmError::new(400, "InvalidApiVersionParameter", message))
        }
        Some(_) => Ok(()),
    }
}

/// Whether a text is a version such as `2024-11-01`, optionally with a suffix such as `-preview`.
fn is_api_version(version: &str) -> bool {
    let date: String = version.chars().take(10).collect();
    date.parse::<jiff::civil::Date>().is_ok()
}

fn platform_error(status: u16) -> Response<Bytes> {
    let code = match status {
        502 => "BadGateway",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        _ => "InternalServerError",
    };
    ArmError::new(
        status,
        code,
        "The server encountered an internal error. Please retry the request.",
    )
    .into_reply()
    .into_response()
}

fn fixed(status: u16, headers: &BTreeMap<String, String>, body: &str) -> Response<Bytes> {
    let reply = Reply {
        status,
        headers: Vec::new(),
        body: Body::Bytes("application/json", body.as_bytes().to_vec()),
    };
    let mut response = reply.into_response();
    for (name, value) in headers {
        // An invalid header in a scenario is left out.
        if let (Ok(name), Ok(value)) = (name.parse::<header::HeaderName>(), value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn error_code(response: &Response<Bytes>) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(response.body()).ok()?;
    body["error"]["code"].as_str().or_else(|| body["code"].as_str()).map(str::to_owned)
}

fn fault_name(fault: &Fault) -> String {
    let name = format!("{fault:?}");
    name.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// URLs of operations and blobs carry signatures, which are left out of the journal.
fn without_signature(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            !["t=", "c=", "s=", "h=", "sig=", "p="].iter().any(|secret| pair.starts_with(secret))
        })
        .collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}
