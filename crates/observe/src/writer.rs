//! Writes to the API server: a limited number at a time, counted, and each safe to repeat.

use std::sync::Arc;

use bringup_azure::clock::Clock;
use bringup_contract::bounds::TimeMath as _;
use bringup_objects::cluster_api::{AnyCondition, is_paused};
use bringup_objects::condition::Condition;
use bringup_objects::report::BootstrapReport;
use bringup_objects::{MANAGER, Node};
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::Health;
use bringup_runtime::recorder::NAMESPACE as EVENT_NAMESPACE;
use bringup_runtime::rights::Right;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::metrics::ObserverMetrics;
use crate::schedule::after_conflict;
use crate::shape::{List, Shape};
use crate::subject::{Mirror, Parent, Subject};

/// The most conflicts with other writers before a write is postponed.
const MIRROR_ATTEMPTS: u32 = 5;
/// How many writes may run at once.
const AT_ONCE: usize = 16;

/// The result of a write.
#[derive(Debug)]
pub enum Written<T> {
    /// The write succeeded; the object as it is now.
    Done(T),
    /// Another writer changed the object first; the object as it is now.
    Stale(T),
    /// The object does not exist any more.
    Gone,
}

/// Writes to the API server.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    namespace: String,
    health: Health,
    hook: EffectHook,
    turns: Arc<Semaphore>,
    metrics: ObserverMetrics,
    clock: Arc<dyn Clock>,
    dry_run: bool,
}

impl Writer {
    /// A writer that creates reports of cluster-scoped subjects in `namespace`.
    pub fn new(
        client: Client,
        namespace: &str,
        health: Health,
        hook: EffectHook,
        metrics: ObserverMetrics,
        clock: Arc<dyn Clock>,
        dry_run: bool,
    ) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            health,
            hook,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            metrics,
            clock,
            dry_run,
        }
    }

    fn reports(&self, report: &BootstrapReport) -> Api<BootstrapReport> {
        let namespace = report.metadata.namespace.as_deref().unwrap_or(&self.namespace);
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The API for a subject's kind and namespace.
    fn subjects(&self, subject: &Subject) -> Api<DynamicObject> {
        self.objects(&subject.shape.resource, subject.namespace.as_deref())
    }

    fn objects(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Does one write in its turn, then calls the hook.
    async fn write<T>(
        &self,
        effect: &'static str,
        right: Right,
        work: impl Future<Output = kube::Result<T>>,
    ) -> kube::Result<T> {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        let done = work.await;
        match &done {
            Ok(_) => {
                self.metrics.wrote(effect);
                self.health.may(right);
                self.hook.done(effect).await;
            }
            Err(error) if !is(error, 409) && !is(error, 404) => self.health.failed(right, error),
            Err(_) => {}
        }
        done
    }

    /// Creates a report with its status.
    pub async fn create_report(
        &self,
        report: &BootstrapReport,
    ) -> kube::Result<Written<BootstrapReport>> {
        let parameters =
            PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: self.dry_run };
        let reports = self.reports(report);
        let create = reports.create(&parameters, report);
        match self.write("report created", Right::WriteReports, create).await {
            Ok(created) => Ok(Written::Done(created)),
            Err(error) if is(&error, 409) => {
                Ok(Written::Stale(reports.get(&report.name_any()).await?))
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a report, unless it has changed meanwhile.
    pub async fn replace_report(
        &self,
        report: &BootstrapReport,
    ) -> kube::Result<Written<BootstrapReport>> {
        let parameters =
            PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: self.dry_run };
        if self.dry_run {
            // In a dry run the report does not exist.
            return Ok(Written::Done(report.clone()));
        }
        let reports = self.reports(report);
        let name = report.name_any();
        let replace = reports.replace(&name, &parameters, report);
        match self.write("report revised", Right::WriteReports, replace).await {
            Ok(written) => Ok(Written::Done(written)),
            Err(error) if is(&error, 409) => match reports.get_opt(&name).await? {
                Some(present) => Ok(Written::Stale(present)),
                None => Ok(Written::Gone),
            },
            Err(error) if is(&error, 404) => Ok(Written::Gone),
            Err(error) => Err(error),
        }
    }

    /// Deletes a report.
    pub async fn delete_report(&self, report: &BootstrapReport) -> kube::Result<()> {
        if self.dry_run {
            return Ok(());
        }
        let reports = self.reports(report);
        let (name, parameters) = (report.name_any(), DeleteParams::default());
        let delete = reports.delete(&name, &parameters);
        match self.write("report deleted", Right::DeleteReports, delete).await {
            Ok(_) => Ok(()),
            Err(error) if is(&error, 404) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes all our conditions, unless the subject has changed meanwhile.
    pub async fn apply_conditions(
        &self,
        subject: &Subject,
        conditions: &[Condition],
    ) -> kube::Result<Written<DynamicObject>> {
        let subjects = self.subjects(subject);
        let (patch, force) = match subject.shape.list {
            List::ByType => {
                let Shape { resource, .. } = &*subject.shape;
                let body = json!({
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "metadata": { "name": subject.name, "resourceVersion": subject.resource_version },
                    "status": { "conditions": conditions },
                });
                (Patch::Apply(body), true)
            }
            // The write replaces the conditions of all writers, so it must contain those of the version that
            // was judged.
            List::Whole => {
                let Some(object) = self.read_again(subject).await? else {
                    return Ok(Written::Gone);
                };
                if object.resource_version().as_ref() != Some(&subject.resource_version) {
                    return Ok(Written::Stale(object));
                }
                let conditions: Vec<AnyCondition> =
                    conditions.iter().map(|one| subject.shape.shaped(one)).collect();
                (Patch::Merge(with(&object, &conditions)), false)
            }
        };
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            force,
            dry_run: self.dry_run,
            ..PatchParams::default()
        };
        let apply = subjects.patch_status(&subject.name, &parameters, &patch);
        match self.write("conditions applied", Right::WriteConditions, apply).await {
            Ok(object) => Ok(Written::Done(object)),
            Err(error) if is(&error, 409) => match self.read_again(subject).await? {
                Some(object) => Ok(Written::Stale(object)),
                None => Ok(Written::Gone),
            },
            Err(error) if is(&error, 404) => Ok(Written::Gone),
            Err(error) => Err(error),
        }
    }

    fn events(&self, event: &Event) -> Api<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or(EVENT_NAMESPACE);
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates an Event, unless it exists.
    pub async fn create_event(&self, event: &Event) -> kube::Result<()> {
        let events = self.events(event);
        let parameters =
            PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: self.dry_run };
        let create = events.create(&parameters, event);
        match self.write("Event created", Right::WriteEvents, create).await {
            Ok(_) => Ok(()),
            Err(error) if is(&error, 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates an Event, or updates its count of occurrences.
    pub async fn create_or_count_event(&self, event: &Event, count: i32) -> kube::Result<()> {
        if count < 2 {
            return self.create_event(event).await;
        }
        let events = self.events(event);
        let at = event.event_time.clone().unwrap_or(MicroTime(jiff::Timestamp::UNIX_EPOCH));
        let series = EventSeries { count, last_observed_time: at };
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            dry_run: self.dry_run,
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "series": series }));
        let name = event.name_any();
        let count = events.patch(&name, &parameters, &patch);
        match self.write("Event counted", Right::WriteEvents, count).await {
            Ok(_) => Ok(()),
            Err(error) if is(&error, 404) => self.create_event(event).await,
            Err(error) => Err(error),
        }
    }

    /// Writes the condition to the provider's object. The API server replaces that object's list of
    /// conditions as a whole, so this function reads the object first, and writes only if no other writer has
    /// changed it since. Returns the object as it is afterwards; none if it no longer exists.
    pub async fn mirror(
        &self,
        subject: &Subject,
        mirror: &Mirror,
        condition: &AnyCondition,
    ) -> kube::Result<Option<DynamicObject>> {
        let objects = self.objects(&mirror.shape.resource, subject.namespace.as_deref());
        let parameters =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let mut last = None;
        for attempt in 0..MIRROR_ATTEMPTS {
            let Some(object) = objects.get_opt(&mirror.name).await? else { return Ok(None) };
            if is_paused(&object.metadata) {
                return Ok(Some(object));
            }
            let body = with(&object, std::slice::from_ref(condition));
            let patch = Patch::Merge(&body);
            let write = objects.patch_status(&mirror.name, &parameters, &patch);
            match self.write("condition mirrored", Right::MirrorConditions, write).await {
                Ok(object) => return Ok(Some(object)),
                Err(error) if is(&error, 409) => {
                    last = Some(error);
                    let version = object.resource_version().unwrap_or_default();
                    let pause = after_conflict(attempt, &subject.uid, &version);
                    self.clock.reach(self.clock.now().plus(pause)).await;
                }
                Err(error) if is(&error, 404) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        last.map_or(Ok(None), Err)
    }

    /// The subject's object, read again.
    pub async fn read_again(&self, subject: &Subject) -> kube::Result<Option<DynamicObject>> {
        self.subjects(subject).get_opt(&subject.name).await
    }

    /// A Node, read again.
    pub async fn node(&self, name: &str) -> kube::Result<Option<Node>> {
        Api::all(self.client.clone()).get_opt(name).await
    }

    /// The parent's API version and uid, if the parent exists and may be read.
    pub async fn parent(&self, parent: &Parent) -> Option<(String, String)> {
        let found = self.find_parent(parent).await;
        match found {
            Ok(found) => {
                self.health.may(Right::Parents);
                found
            }
            Err(error) => {
                self.health.failed(Right::Parents, &error);
                None
            }
        }
    }

    async fn find_parent(&self, parent: &Parent) -> kube::Result<Option<(String, String)>> {
        let resource = if parent.kind == "NodePool" {
            ApiResource::erase::<bringup_objects::NodePool>(&())
        } else {
            let group = kube::discovery::group(&self.client, &parent.group).await?;
            match group.recommended_kind(&parent.kind) {
                Some((resource, _)) => resource,
                None => return Ok(None),
            }
        };
        let api = self.objects(&resource, parent.namespace.as_deref());
        let found = api.get_opt(&parent.name).await?;
        Ok(found
            .and_then(|object| Some((resource.api_version.clone(), object.meta().uid.clone()?))))
    }
}

/// A patch with the whole list: our conditions, and those of other writers unchanged. The API server refuses
/// the patch if another writer has changed the object.
fn with(object: &DynamicObject, conditions: &[AnyCondition]) -> Value {
    let present = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut all = present.cloned().unwrap_or_default();
    for condition in conditions {
        let ours = serde_json::to_value(condition).unwrap_or_default();
        match all.iter_mut().find(|one| one["type"] == condition.kind.as_str()) {
            Some(known) => *known = ours,
            None => all.push(ours),
        }
    }
    json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { "conditions": all },
    })
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
