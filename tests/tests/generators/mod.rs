//! Extreme values for every field of an object, the same in each run. Objects that the API server refuses
//! are counted and left out.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::request_counter::RequestCounter;
use bringup_objects::{BootstrapReport, Readable};
use bringup_runtime::metrics::Metrics;
use http::{Method, Request};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

pub(crate) mod objects;

/// The largest number of extreme fields in one object: among many, the API server nearly always refuses
/// one.
const MOST_FIELDS: usize = 3;
/// How often an object is tried with other extremes.
const TRIES: usize = 4;

/// A field of an object, by its JSON pointer, and what it can hold.
pub(crate) type Field = (&'static str, BoxedStrategy<Value>);

/// Times as texts, some of them invalid.
pub(crate) fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("9999-12-30T22:00:00Z".to_owned()),
        Just("9999-12-31T23:59:59.9999999Z".to_owned()),
        Just("0001-01-01T00:00:00Z".to_owned()),
        Just("-009999-01-01T00:00:00Z".to_owned()),
        Just("1970-01-01T00:00:00Z".to_owned()),
        Just("2026-02-30T25:61:61Z".to_owned()),
        Just("2026-01-27T14:32:00+99:99".to_owned()),
        Just(String::new()),
        Just("9".repeat(400)),
        ".{0,30}",
    ]
}

/// Texts that are long, deep, or made to mislead their readers.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(format!("BRINGUP-NODE/1 {{\"exit\":211,\"ev\":[{}", "1,".repeat(40_000))),
        Just("BRINGUP-NODE/1 {\"a\":{".repeat(4_000)),
        Just("<a".repeat(40_000)),
        Just("{\"a\":".repeat(20_000)),
        Just("\\\"".repeat(40_000)),
        Just("\u{202e}\u{0}\u{feff}\u{fffd}".repeat(1_000)),
        any::<i64>().prop_map(|code| format!("exit status={code}\n{{ \"ExitCode\": \"{code}\" }}")),
        Just("[stdout]\n{ \"ExitCode\": \"99999999999999999999999\", \"Error\": \"\" }".to_owned()),
        "(?s).{0,400}",
    ]
}

/// Any kind of value where a text, a number, a list or an object is expected.
pub(crate) fn wrong() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!(1e308)),
        any::<i64>().prop_map(|number| json!(number)),
        text().prop_map(Value::String),
        Just(json!([[[[]]], {"a": {"b": [null]}}])),
    ]
}

/// Times that the API server accepts, or might accept: beyond the year 9999 once their offset is applied,
/// with offsets of more than a day, in lower case, in leap seconds.
fn stamp() -> BoxedStrategy<Value> {
    let texts = vec![
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-12:00",
        "9999-12-31T23:59:59-23:59",
        "0000-01-01T00:00:00+12:00",
        "0001-01-01T00:00:01Z",
        "2026-01-27T14:32:00+99:99",
        "2026-01-27t14:32:00z",
        "2026-01-27T14:32:00x5Z",
        "2016-12-31T23:59:60Z",
        "2199-12-31T23:59:59Z",
        "1999-12-31T23:59:59Z",
    ];
    prop_oneof![
        6 => prop::sample::select(texts).prop_map(|text| json!(text)),
        2 => time().prop_map(Value::String),
        1 => wrong(),
    ]
    .boxed()
}

/// The same for fields with microseconds.
fn micro_stamp() -> BoxedStrategy<Value> {
    let texts = vec![
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999-12:00",
        "0000-01-01T00:00:00.000000+12:00",
        "0001-01-01T00:00:00.000001Z",
        "2026-01-27T14:32:00.123456+14:00",
    ];
    prop_oneof![
        4 => prop::sample::select(texts).prop_map(|text| json!(text)),
        1 => stamp(),
    ]
    .boxed()
}

/// Ids of VMs, most of them invalid.
fn provider_id() -> BoxedStrategy<Value> {
    let group = "azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups";
    let vm = "providers/Microsoft.Compute/virtualMachines";
    let set = "providers/Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines";
    let texts = vec![
        "azure://".to_owned(),
        "azure:///subscriptions/".to_owned(),
        "azure-flex://".to_owned(),
        "aws:///us-east-1a/i-0".to_owned(),
        "kind://docker/a/b".to_owned(),
        format!("{group}/MC_rg1_aks1_eastus/{vm}/nothing-here"),
        format!("{group}/MC_rg1_aks1_eastus/{vm}/"),
        format!("{group}/../../{vm}/up"),
        format!("{group}/a%2Fb%00/{vm}/a?b=c#d"),
        format!("{group}/{}/{vm}/long", "g".repeat(10_000)),
        format!("{group}/g/{set}/99999999999999999999999999"),
        format!("{group}/g/{set}/-1"),
        format!("{group}/g/{vm}/a/b/c/d/e"),
        format!("{group}/g\r\nHost: x/{vm}/split"),
        format!("{group}/g/{vm}/\u{202e}\u{0}\u{feff}"),
        format!("AZURE:///SUBSCRIPTIONS/X/{vm}/loud").to_uppercase(),
        "/".repeat(4_000),
    ];
    prop_oneof![
        6 => prop::sample::select(texts).prop_map(Value::String),
        1 => ".{0,80}".prop_map(Value::String),
        1 => wrong(),
    ]
    .boxed()
}

/// Names of objects, reasons, and other short words.
fn word() -> BoxedStrategy<Value> {
    let texts = vec![
        String::new(),
        "UPPER_case.-".to_owned(),
        "a/b:c d".to_owned(),
        "x".repeat(63),
        "x".repeat(253),
        "X".repeat(1_024),
        "Failed".to_owned(),
        "Deleting".to_owned(),
        "CreateInstanceFailed".to_owned(),
        "BootstrapSucceeded".to_owned(),
        "\u{0}\u{202e}".to_owned(),
        "-".to_owned(),
        "../..".to_owned(),
    ];
    prop_oneof![
        5 => prop::sample::select(texts).prop_map(Value::String),
        1 => ".{0,40}".prop_map(Value::String),
        1 => wrong(),
    ]
    .boxed()
}

/// Values of labels, most of them as long as allowed.
fn label() -> BoxedStrategy<Value> {
    let texts = vec![String::new(), "x".repeat(63), "A.-_b".to_owned(), "x".repeat(64)];
    prop_oneof![3 => prop::sample::select(texts).prop_map(Value::String), 1 => word()].boxed()
}

/// The statuses that a condition can have.
fn status() -> BoxedStrategy<Value> {
    prop_oneof![
        4 => prop::sample::select(&["True", "False", "Unknown"][..]).prop_map(|word| json!(word)),
        1 => word(),
    ]
    .boxed()
}

/// Messages, one of them as long as a condition's message may be.
fn message() -> BoxedStrategy<Value> {
    prop_oneof![
        1 => Just(json!("m".repeat(32_768))),
        2 => "(?s).{0,300}".prop_map(Value::String),
        2 => text().prop_map(Value::String),
    ]
    .boxed()
}

fn number() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!(i64::MAX)),
        Just(json!(i64::MIN)),
        Just(json!(u64::MAX)),
        Just(json!(u32::MAX)),
        Just(json!(i32::MAX)),
        Just(json!(i32::MIN)),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!(1.5)),
        Just(json!(1e20)),
        wrong(),
    ]
    .boxed()
}

fn any_value() -> BoxedStrategy<Value> {
    wrong().boxed()
}

/// How many objects the API server has accepted and refused.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    accepted: u64,
    refused: u64,
}

/// The beginning of the uid of a target that does not exist.
pub(crate) const GONE: &str = "gone-";

/// Fails if the handling of any object has panicked.
pub(crate) fn assert_no_panics(metrics: &Metrics) {
    let metrics = metrics.text();
    assert!(metrics.contains("bringup_panics_total 0"), "{metrics}");
}

/// Makes objects with extreme fields.
pub(crate) struct Generator {
    client: Client,
    runner: TestRunner,
    tally: BTreeMap<&'static str, Tally>,
}

impl Generator {
    /// A generator that makes the same objects in each run, so that a failure can be reproduced.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, runner: TestRunner::deterministic(), tally: BTreeMap::new() }
    }

    fn draw<S: Strategy>(&mut self, strategy: &S) -> Result<S::Value> {
        let tree = strategy.new_tree(&mut self.runner).map_err(anyhow::Error::msg)?;
        Ok(tree.current())
    }

    /// The object with extreme values in a few of these fields.
    fn extreme(&mut self, object: &Value, fields: &[Field]) -> Result<Value> {
        let mut object = object.clone();
        let which: Vec<usize> = (0..fields.len()).collect();
        let some = prop::sample::subsequence(which, 1..=MOST_FIELDS.min(fields.len()));
        for nth in self.draw(&some)? {
            let (pointer, values) = &fields[nth];
            let value = self.draw(values)?;
            set(&mut object, pointer, value);
        }
        Ok(object)
    }

    /// Creates or patches the object with extreme values in it. If the API server refuses all tries,
    /// sends the object without extreme values.
    pub(crate) async fn send(
        &mut self,
        what: &'static str,
        (method, path): (Method, &str),
        object: &Value,
        fields: &[Field],
    ) -> Result<()> {
        for _ in 0..TRIES {
            let extreme = self.extreme(object, fields)?;
            let refusal = self.ask(&method, path, &extreme).await?;
            let tally = self.tally.entry(what).or_default();
            if refusal.is_none() {
                tally.accepted += 1;
                return Ok(());
            }
            tally.refused += 1;
        }
        let refusal = self.ask(&method, path, object).await?;
        ensure!(refusal.is_none(), "{what} is refused without extremes too: {refusal:?}");
        Ok(())
    }

    /// The reason for which the API server refuses a body, if it does. The response is read as text: it
    /// may not parse as an object of its type.
    async fn ask(&self, method: &Method, path: &str, body: &Value) -> Result<Option<String>> {
        let kind = if *method == Method::PATCH { "merge-patch+json" } else { "json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format!("application/{kind}"))
            .body(body.to_string().into_bytes())
            .context("make a request")?;
        match self.client.request_text(request).await {
            Ok(_) => Ok(None),
            // Some values make the API server fail internally; it does not store them either.
            Err(kube::Error::Api(status)) if (400..=500).contains(&status.code) => {
                Ok(Some(status.message.clone()))
            }
            Err(error) => Err(error).with_context(|| format!("{method} {path}")),
        }
    }

    /// The uid of an object whose other fields may not parse.
    pub(crate) async fn uid(&self, path: &str) -> Result<String> {
        let request = Request::get(path).body(Vec::new()).context("make a request")?;
        let text =
            self.client.request_text(request).await.with_context(|| format!("GET {path}"))?;
        let object: Value = serde_json::from_str(&text)?;
        Ok(object["metadata"]["uid"].as_str().context("it has a uid")?.to_owned())
    }

    /// The reports in a namespace whose target no longer exists and that were never announced.
    pub(crate) async fn unannounced(&self, namespace: &str) -> Result<Vec<String>> {
        let api: Api<Readable<BootstrapReport>> = Api::namespaced(self.client.clone(), namespace);
        let reports = api.list(&ListParams::default()).await.context("list reports")?;
        let readable = reports.items.into_iter().filter_map(|report| report.0.ok());
        let open = readable.filter(|report| {
            let target = &report.spec.target_ref;
            let is_ours = ["NodeClaim", "Machine"].contains(&target.kind.as_str());
            is_ours && target.uid.starts_with(GONE) && !report.is_announced()
        });
        let named = open.map(|report| {
            let target = &report.spec.target_ref;
            format!("{}: {target:?}, {:?}", report.name_any(), report.cause())
        });
        Ok(named.collect())
    }

    /// Fails if more than `most` writes per object were sent.
    pub(crate) fn assert_writes(&self, counter: &RequestCounter, most: u64) {
        let counts = counter.counts();
        println!("{counts:?}");
        let objects: u64 = self.tally.values().map(|tally| tally.accepted).sum();
        let writes = counts.all_writes();
        assert!(writes <= most * objects, "{writes} writes for {objects} objects: {counts:?}");
    }

    /// Fails unless the API server accepted at least this many of each kind: otherwise nothing was
    /// tested.
    pub(crate) fn assert_accepted(&self, least: u64) {
        for (what, Tally { accepted, refused }) in &self.tally {
            println!("{what}: {accepted} accepted, {refused} refused");
        }
        for (what, Tally { accepted, .. }) in &self.tally {
            assert!(*accepted >= least, "only {accepted} of {what} were accepted");
        }
    }
}

/// Sets a field, and creates its parents where they are missing. A parent of another type stays as it is.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/");
        place = match place {
            Value::Array(all) => {
                let nth = part.parse::<usize>().ok();
                let Some(one) = nth.and_then(|nth| all.get_mut(nth)) else { return };
                one
            }
            Value::Object(_) | Value::Null => &mut place[part],
            Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
    }
    *place = value;
}
