//! Prints an answer in each of its formats.

use anyhow::Context as _;
use bringup_diagnosis::Verdict;
use bringup_objects::BootstrapReport;
use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition};
use jiff::Timestamp;
use serde::Serialize;

use super::case::{Case, Look};
use super::text::explanation;
use crate::args::AnswerForm;
use crate::images::Fared;
use crate::output;
use crate::program::Program;

/// The answer for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    /// Whether the object still exists.
    exists: bool,
    verdict: Verdict,
    cause: Option<&'a str>,
    node_name: Option<&'a str>,
    node_ready: Option<bool>,
    node_pool: Option<&'a str>,
    cluster: Option<&'a str>,
    image_version: Option<String>,
    /// The conditions of the object, while it exists.
    conditions: Vec<&'a Condition>,
    images: &'a [Fared],
    report: Option<&'a BootstrapReport>,
    /// The current observation. If it is present, the report is not stored in the cluster.
    look: Option<&'a Look>,
    other_reports: Vec<String>,
    notes: &'a [String],
}

/// The answer in the requested format.
pub(super) fn form(
    case: &Case,
    form: AnswerForm,
    program: Program,
    now: Timestamp,
) -> anyhow::Result<String> {
    match form {
        AnswerForm::Text => Ok(output::explained(&explanation(case, program, now))),
        AnswerForm::Json => {
            let json = serde_json::to_string_pretty(&answer(case))
                .context("cannot serialize the answer to JSON")?;
            Ok(json + "\n")
        }
        AnswerForm::Yaml => {
            serde_saphyr::to_string(&answer(case)).context("cannot serialize the answer to YAML")
        }
    }
}

fn answer(case: &Case) -> Answer<'_> {
    let conditions =
        [case.cse(), case.condition(BOOTSTRAP_SUCCEEDED), case.condition(REPLACEMENT_USEFUL)];
    Answer {
        kind: &case.subject.kind,
        namespace: case.subject.namespace.as_deref(),
        name: &case.subject.name,
        exists: case.living.is_some() || case.subject.kind == "Node",
        verdict: case.verdict,
        cause: case.cause(),
        node_name: case.node_name(),
        node_ready: case.node.as_ref().map(bringup_objects::Node::is_ready),
        node_pool: case.pool(),
        cluster: case.cluster(),
        image_version: case.image().map(|image| image.version),
        conditions: conditions.into_iter().flatten().collect(),
        images: &case.images,
        report: case.report.as_ref(),
        look: case.look.as_ref(),
        other_reports: case.others.iter().map(bringup_explain::place).collect(),
        notes: &case.notes,
    }
}
