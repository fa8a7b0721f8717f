//! Reads the sources of evidence from Azure and Kubernetes. Each read may fail on its own; the observation
//! records each failure.

mod console;

use std::sync::Arc;

use bringup_azure::clock::Clock;
use bringup_azure::model::{ActivityLog, VirtualMachine};
use bringup_azure::{Arm, ArmError, InstanceId, Priority, ProviderId, Turn};
use bringup_contract::bounds::TimeMath as _;
use bringup_diagnosis::{Confidence, Signatures};
use bringup_objects::Node;
use bringup_objects::report::CollectorState;
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::Health;
use bringup_runtime::rights::Right;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::ListParams;
use kube::{Api, Client};

pub use self::console::Console;
use self::console::Unreadable;
use crate::collector::{self, collected, refusal};
use crate::console_watch::{Finding, WatchedConsole};
use crate::memory::EXCERPT_BYTES;
use crate::observation::{Cse, Observation, Vm};
use crate::profile::NodeLocation;
use crate::read_scope::ReadScope;
use crate::snapshot::Signal;
use crate::subject::{Place, Subject};
use crate::workers::Workers;

/// How long after the deadline a verdict must be made, even if reads are still waiting.
const LAST_MOMENT: SignedDuration = SignedDuration::from_secs(50);
/// The longest wait of a read that begins after that moment.
const GRACE: SignedDuration = SignedDuration::from_secs(2);
/// The most certificate requests to search.
const MOST_REQUESTS: u32 = 500;
/// The default lifetime of a join token of Cluster API's kubeadm provider.
const TOKEN_HOLDS: SignedDuration = SignedDuration::from_mins(15);

/// Collects evidence from Azure and Kubernetes.
#[derive(Clone)]
pub struct Collect {
    arm: Arm,
    client: Client,
    clock: Arc<dyn Clock>,
    health: Health,
    hook: EffectHook,
    console: Console,
    signatures: Signatures,
    workers: Workers,
    read_scope: ReadScope,
}

impl Collect {
    /// A collector that reads with these clients.
    pub fn new(
        arm: Arm,
        client: Client,
        clock: Arc<dyn Clock>,
        health: Health,
        hook: EffectHook,
    ) -> Self {
        let console = Console::new(arm.clone(), clock.clone(), hook.clone());
        let (signatures, workers) = (Signatures::default(), console.workers());
        let read_scope = ReadScope::everything();
        Self { arm, client, clock, health, hook, console, signatures, workers, read_scope }
    }

    /// Restricts the reads to this scope.
    #[must_use]
    pub fn with_read_scope(mut self, read_scope: ReadScope) -> Self {
        self.read_scope = read_scope;
        self
    }

    /// The VMs that this collector may read.
    pub(crate) fn read_scope(&self) -> &ReadScope {
        &self.read_scope
    }

    /// Adds the operator's own signatures to those that a diagnosis searches for.
    #[must_use]
    pub fn with_signatures(mut self, signatures: Signatures) -> Self {
        self.signatures = signatures;
        self
    }

    /// Reads the VM, and the AKS machine if the subject has one. Earlier facts remain.
    pub async fn look(
        &self,
        subject: &Subject,
        known: Option<Observation>,
        signal: Option<&Signal>,
        priority: Priority,
        since: Timestamp,
    ) -> Observation {
        let seen = self.looked(subject, known, signal, priority, since).await;
        self.excerpted(seen).await
    }

    /// Waits until Azure refuses reads of a subject's VM until later than `than`, and returns the new end of
    /// the refusal.
    pub(crate) async fn refused_beyond(&self, subject: &Subject, than: Timestamp) -> Timestamp {
        match &subject.place {
            Place::Known(id) => self.arm.refused_beyond(&id.instance, than).await,
            Place::NotSaid | Place::Malformed(_) => std::future::pending().await,
        }
    }

    /// Diagnoses long evidence and cuts it to excerpts. Short evidence is diagnosed only when a decision
    /// needs the diagnosis: most short evidence never needs one.
    pub(crate) async fn excerpted(&self, seen: Observation) -> Observation {
        match seen.evidence.size() {
            size if Workers::is_small(size) => seen,
            size => self.workers.run(size, move || seen.with_excerpts(EXCERPT_BYTES)).await,
        }
    }

    async fn looked(
        &self,
        subject: &Subject,
        known: Option<Observation>,
        signal: Option<&Signal>,
        priority: Priority,
        since: Timestamp,
    ) -> Observation {
        let turn = priority.since(since);
        let deadline = deadline(subject, known.as_ref(), priority, self.clock.now());
        let mut seen = self.prepared(subject, known.unwrap_or_default());
        seen.collectors.retain(|known| known.name != collector::PROVIDER_OBJECT);
        if let Some(trouble) = &subject.trouble {
            seen.collected(collected(collector::PROVIDER_OBJECT, CollectorState::Failed, trouble));
        }
        if let Some(signal) = signal {
            seen = seen.with_signal(&signal.text);
        }
        let mut instance = match &subject.place {
            Place::Known(id) => Some(id.instance.clone()),
            Place::NotSaid | Place::Malformed(_) => None,
        };
        let refused = subject.machine.as_ref().and_then(|id| self.read_scope.refuses_machine(id));
        if let Some(why) = &refused {
            seen.collected(collected(collector::MACHINE, CollectorState::Denied, why));
        }
        if let Some(machine) = subject.machine.as_ref().filter(|_| refused.is_none()) {
            match self.asked(self.arm.machine(machine, turn).await).await {
                Ok(machine) => {
                    let beneath = machine.resource_id.as_ref();
                    instance = beneath.and_then(|id| InstanceId::try_from(id).ok()).or(instance);
                    seen = seen.with_machine(&machine, self.clock.now());
                    // While AKS is still creating the VM, a read of the VM costs budget and shows little.
                    if machine.is_underway() && priority == Priority::Schedule {
                        return seen;
                    }
                }
                Err(error) => {
                    let (state, detail) = refusal(&error);
                    seen.collected(collected(collector::MACHINE, state, &detail));
                }
            }
        }
        let Some(instance) = instance else {
            seen.at = self.clock.now();
            let detail = match &subject.place {
                Place::Malformed(why) => why.clone(),
                Place::NotSaid | Place::Known(_) => "the provider id is not known".to_owned(),
            };
            seen.denied = Some(detail.clone());
            seen.collected(collected(collector::VM, CollectorState::Failed, &detail));
            return seen;
        };
        if let Some(why) = self.read_scope.refuses(subject, &instance).await {
            return seen.outside_read_scope(&why, self.clock.now());
        }
        let Some(answer) = self.in_time(deadline, self.arm.instance(&instance, turn)).await else {
            return seen.unread(self.clock.now());
        };
        match self.asked(answer).await {
            Ok(vm) => {
                self.health.azure(None);
                let now = self.clock.now();
                let size = size_of(&vm).saturating_add(seen.evidence.size());
                self.workers.run(size, move || seen.with_vm(&vm, now).with_diagnostics(&vm)).await
            }
            Err(error) => {
                self.health.azure((!error.is_not_found()).then(|| refusal(&error).1));
                seen.without_vm(&error, self.clock.now())
            }
        }
    }

    /// Reads all other sources: the console, run commands, and Kubernetes.
    pub async fn deepen(
        &self,
        subject: &Subject,
        seen: Observation,
        node: Option<&Node>,
        priority: Priority,
    ) -> Observation {
        let turn = priority.since(self.clock.now());
        let deadline = deadline(subject, Some(&seen), priority, self.clock.now());
        let seen = match &subject.place {
            Place::NotSaid | Place::Malformed(_) => seen,
            Place::Known(id) if self.read_scope.refuses(subject, &id.instance).await.is_some() => {
                seen
            }
            Place::Known(id) => {
                let read =
                    self.in_time(deadline, self.read_console(id, subject, &seen, turn)).await;
                read.unwrap_or_else(|| seen.without_turn(collector::SERIAL_LOG, self.clock.now()))
            }
        };
        let seen = if may_wait_in_a_command(subject, &seen, priority) {
            match self.in_time(deadline, self.run_commands(subject, seen.clone(), turn)).await {
                Some(seen) => seen,
                None => seen.without_turn(collector::RUN_COMMANDS, self.clock.now()),
            }
        } else {
            seen
        };
        let mut seen = self.kubernetes(subject, seen, node).await;
        seen.is_full = true;
        self.excerpted(seen).await
    }

    /// Adds the text of the console as an excerpt.
    async fn read_console(
        &self,
        id: &ProviderId,
        subject: &Subject,
        seen: &Observation,
        turn: Turn,
    ) -> Observation {
        let (read, _room) =
            self.console.read(&id.instance, subject.profile, seen.clone(), turn).await;
        self.excerpted(read).await
    }

    /// Reads new text on the console, and returns whether it proves that the bootstrap failed.
    pub(crate) async fn watch_console(
        &self,
        subject: &Subject,
        mut console: WatchedConsole,
        priority: Priority,
    ) -> (WatchedConsole, Finding) {
        let Place::Known(id) = &subject.place else { return (console, Finding::Unreadable) };
        if self.read_scope.refuses(subject, &id.instance).await.is_some() {
            return (console, Finding::Unreadable);
        }
        let turn = priority.since(self.clock.now());
        let found = match self.console.read_if_changed(&id.instance, &mut console, turn).await {
            Ok(Some((text, _room))) => {
                let proves = self.proves_failure(subject, text).await;
                if proves { Finding::Failure } else { Finding::NoFailure }
            }
            Ok(None) => Finding::NoFailure,
            Err(Unreadable) => Finding::Unreadable,
        };
        (console, found)
    }

    async fn proves_failure(&self, subject: &Subject, text: String) -> bool {
        let seen = self.prepared(subject, Observation::default());
        let (size, console_decides) = (text.len(), subject.profile.console_decides);
        let proves = move || {
            let seen = seen.with_console(&text, true);
            matches!(seen.cse, Cse::Failed { .. })
                || console_decides && seen.evidence.is_proven_by_guest()
        };
        self.workers.run(size, proves).await
    }

    /// Adds the facts that are known about a subject before it is read.
    fn prepared(&self, subject: &Subject, mut seen: Observation) -> Observation {
        seen.script = subject.profile.script;
        let evidence = seen.evidence.change();
        evidence.api_server.clone_from(&subject.api_server);
        evidence.signatures = self.signatures.clone();
        seen
    }

    async fn run_commands(
        &self,
        subject: &Subject,
        mut seen: Observation,
        turn: Turn,
    ) -> Observation {
        let Place::Known(id) = &subject.place else { return seen };
        if self.read_scope.refuses(subject, &id.instance).await.is_some() {
            return seen;
        }
        match self.asked(self.arm.run_commands(&id.instance, turn).await).await {
            // The output of run commands may be long.
            Ok(commands) if commands.is_empty() => seen.with_run_commands(&commands),
            Ok(commands) => {
                self.workers.run(usize::MAX, move || seen.with_run_commands(&commands)).await
            }
            Err(error) => {
                let (state, detail) = refusal(&error);
                seen.collected(collected(collector::RUN_COMMANDS, state, &detail));
                seen
            }
        }
    }

    async fn kubernetes(
        &self,
        subject: &Subject,
        mut seen: Observation,
        node: Option<&Node>,
    ) -> Observation {
        if subject.profile.node == NodeLocation::WorkloadCluster {
            // The Node and its certificate requests are in the workload cluster.
            let detail = "not read: the Machine itself refers to its Node";
            seen.collected(collected(collector::KUBERNETES, CollectorState::Empty, detail));
            let age = token_age(subject.created.duration_until(self.clock.now()));
            seen.collected(collected(collector::TOKEN_AGE, CollectorState::Ok, &age));
            return seen;
        }
        let mut lines = Vec::new();
        let name = subject
            .node_name
            .clone()
            .or_else(|| seen.facts.computer_name.clone())
            .or_else(|| subject.vm_name());
        if let (Some(node), Some(name)) = (node, &name) {
            let ready = node.ready();
            let reason = ready.and_then(|ready| ready.reason.clone()).unwrap_or_default();
            let message = ready.and_then(|ready| ready.message.clone()).unwrap_or_default();
            lines.push(format!("Node {name} exists and is not ready: {reason} {message}"));
        }
        let Some(name) = name else { return seen.with_kubernetes(&lines) };
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        match requests.list(&ListParams::default().limit(MOST_REQUESTS)).await {
            Ok(found) => {
                self.health.may(Right::CertificateRequests);
                lines.extend(found.items.iter().filter_map(|request| told(request, &name)));
                seen.with_kubernetes(&lines)
            }
            Err(error) => {
                self.health.failed(Right::CertificateRequests, &error);
                let detail = format!("certificate requests cannot be read: {error}");
                seen.collected(collected(collector::KUBERNETES, CollectorState::Denied, &detail));
                seen
            }
        }
    }

    /// The activity log's entries since `from` for the VM's resource group.
    pub async fn activity(
        &self,
        id: &InstanceId,
        from: Timestamp,
    ) -> Result<ActivityLog, ArmError> {
        let (subscription, group) = match id {
            InstanceId::VirtualMachine(vm) => (&vm.subscription, &vm.resource_group),
            InstanceId::ScaleSetInstance(vm) => (&vm.subscription, &vm.resource_group),
        };
        let (from, to) = (from.minus(SignedDuration::from_mins(5)), self.clock.now());
        let turn = Priority::Schedule;
        self.asked(self.arm.activity_log(subscription, group, from, to, turn).await).await
    }

    /// The result, if it arrives before the deadline: a verdict from known facts is better than a late read.
    async fn in_time<T>(
        &self,
        deadline: Option<Timestamp>,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(deadline) = deadline else { return Some(work.await) };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.clock.reach(deadline) => None,
        }
    }

    async fn asked<T>(&self, answer: Result<T, ArmError>) -> Result<T, ArmError> {
        self.hook.done("ARM read").await;
        answer
    }
}

/// A look that has a deadline is cancelled just before the claim is deleted. A look that begins later gets
/// [`GRACE`]: a look that waits for its turn in vain must not wait forever.
fn deadline(
    subject: &Subject,
    seen: Option<&Observation>,
    priority: Priority,
    now: Timestamp,
) -> Option<Timestamp> {
    match priority {
        Priority::Forced | Priority::Schedule if subject.registered.is_none() => {
            Some(subject.deadline(seen).plus(LAST_MOMENT).max(now.plus(GRACE)))
        }
        Priority::Forced | Priority::Schedule | Priority::Event | Priority::Deletion => None,
    }
}

/// The total size of the texts on a VM.
fn size_of(vm: &VirtualMachine) -> usize {
    let extensions = vm.extensions.iter();
    let statuses = extensions.flat_map(|one| one.statuses.iter().chain(&one.substatuses));
    let texts = statuses.chain(&vm.statuses).filter_map(|status| status.message.as_deref());
    texts.map(str::len).sum()
}

/// Whether reading the run commands is worth its cost: the evidence does not prove a cause, and the agent
/// knows of managed run commands or this is the last read before a verdict.
fn may_wait_in_a_command(subject: &Subject, seen: &Observation, priority: Priority) -> bool {
    let is_last = seen.at >= subject.deadline(Some(seen)) || priority == Priority::Event;
    subject.profile.console_decides
        && matches!(seen.vm, Vm::Present | Vm::Failed)
        && (seen.runs_commands || is_last)
        && seen.evidence.diagnosis().cause.confidence != Confidence::High
}

/// The report line about a certificate request, if it is the node's.
fn told(request: &CertificateSigningRequest, node: &str) -> Option<String> {
    let asked = format!("system:node:{}", node.to_ascii_lowercase());
    let by_node = request.spec.username.as_deref() == Some(asked.as_str());
    if !by_node && !names_node(&request.spec.request.0, &asked) {
        return None;
    }
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let user = request.spec.username.as_deref().unwrap_or("an unnamed user");
    let conditions =
        request.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let has = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
    let state = match (has("Denied"), has("Failed"), has("Approved")) {
        (Some(denied), ..) => {
            format!("was denied: {}", denied.message.as_deref().unwrap_or_default())
        }
        (_, Some(failed), _) => {
            format!("failed: {}", failed.message.as_deref().unwrap_or_default())
        }
        (None, None, Some(_)) => "was approved".to_owned(),
        (None, None, None) => "is pending: not approved yet".to_owned(),
    };
    Some(format!("CertificateSigningRequest (CSR) {name} of {user} for node {node} {state}"))
}

/// Whether a request in PEM is for this node: the decoded request contains the name as plain text.
fn names_node(pem: &[u8], asked: &str) -> bool {
    let text = String::from_utf8_lossy(pem);
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    base64_decoded(&body)
        .windows(asked.len())
        .any(|window| window.eq_ignore_ascii_case(asked.as_bytes()))
}

fn base64_decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

/// What a Machine's age implies for its join token. The token itself is never read.
fn token_age(age: SignedDuration) -> String {
    let (minutes, holds) = (age.as_mins(), TOKEN_HOLDS.as_mins());
    let may = if age > TOKEN_HOLDS { "may have expired" } else { "cannot have expired" };
    format!(
        "the Machine is {minutes} min old: a token of Cluster API's kubeadm provider, which holds \
         {holds} min unless it is renewed, {may}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Agent;

    #[test]
    fn a_look_that_got_no_turn_proves_nothing_of_the_vm_by_what_was_seen_before() {
        let at = Timestamp::UNIX_EPOCH;
        let read = Observation {
            vm: Vm::Present,
            agent: Agent::Silent,
            is_full: true,
            ..Observation::default()
        };
        let unread = read.unread(at + SignedDuration::from_mins(13));
        assert_eq!((unread.agent, unread.is_full), (Agent::NotSeen, false));
        assert_eq!(unread.vm, Vm::Present, "what is known stays");
        let vm = serde_json::json!({ "name": "a", "properties": {} });
        let read = unread.with_vm(&bringup_azure::model::VirtualMachine::of(vm), at);
        assert_eq!(read.agent, Agent::Silent, "until it is read again");
    }

    #[test]
    fn the_age_of_a_machine_tells_whether_its_token_may_have_expired() {
        let young = token_age(SignedDuration::from_mins(4));
        assert!(young.starts_with("the Machine is 4 min old"), "{young}");
        assert!(young.ends_with("cannot have expired"), "{young}");
        assert!(token_age(SignedDuration::from_mins(16)).ends_with("may have expired"));
    }
}
