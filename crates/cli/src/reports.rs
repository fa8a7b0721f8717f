//! `bringup reports` and `bringup report`: the failures that are stored in the cluster.

use anyhow::Context as _;
use bringup_contract::Open;
use bringup_explain::Explanation;
use bringup_objects::BootstrapReport;
use bringup_objects::report::Phase;
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use crate::args::{AnswerForm, ListForm};
use crate::cluster::{self, Choice, Cluster, Unseen};
use crate::failure::{Exit, Failure};
use crate::program::Program;
use crate::request::{Report, Reports, Wanted};
use crate::why::{MACHINE, Subject, exit_of, made, nearest, newest_first, starts};
use crate::{images, output, table};

/// Lists the matching reports, newest first.
pub(crate) fn list(options: &Reports, program: Program) -> Result<Exit, Failure> {
    let now = Timestamp::now();
    let all = read(&options.cluster, program)?;
    let known = all.len();
    let reports: Vec<_> =
        all.into_iter().filter(|report| is_wanted(report, &options.wanted, now)).collect();
    let answer = match options.form {
        ListForm::Table | ListForm::Wide if reports.is_empty() => none(known, &options.cluster),
        ListForm::Table => {
            Columns::narrow_for(&reports, options.all_namespaces).narrow(&reports, now)
        }
        ListForm::Wide => Columns::wide_for(&reports).wide(&reports, now),
        ListForm::Json => json(&objects(&reports))?,
        ListForm::Yaml => yaml(&objects(&reports))?,
    };
    output::answer(&answer)?;
    Ok(Exit::Fine)
}

pub(crate) fn show(options: &Report, program: Program) -> Result<Exit, Failure> {
    let all = read(&options.cluster, program)?;
    let report = one(all, &options.name, program)?;
    let answer = match options.form {
        AnswerForm::Text => {
            let told = table::ago(made(&report), Timestamp::now());
            let who = format!("{}; diagnosed {told}.", Subject::of_report(&report).words());
            let mut explanation = Explanation::of_report(&report, &who);
            explanation.facts(&report, true);
            output::explained(&explanation)
        }
        AnswerForm::Json => json(&report)?,
        AnswerForm::Yaml => yaml(&report)?,
    };
    output::answer(&answer)?;
    Ok(exit_of(&report))
}

fn read(choice: &Choice, program: Program) -> Result<Vec<BootstrapReport>, Failure> {
    let mut reports = cluster::run(async {
        let cluster = Cluster::find(choice, program).await?;
        cluster.reports().await.map_err(Unseen::failure)
    })?;
    newest_first(&mut reports);
    Ok(reports)
}

fn is_wanted(report: &BootstrapReport, wanted: &Wanted, now: Timestamp) -> bool {
    let Wanted { kind, cluster, pool, image, since, cause } = wanted;
    let recent = |since| made(report).is_some_and(|made| made.duration_until(now) <= since);
    kind.is_none_or(|kind| report.spec.target_ref.kind == kind.word())
        && cluster
            .as_deref()
            .is_none_or(|cluster| bringup_explain::cluster(report) == Some(cluster))
        && pool.as_deref().is_none_or(|pool| images::pool(report) == Some(pool))
        && image.as_deref().is_none_or(|image| report.spec.image_version.as_deref() == Some(image))
        && since.is_none_or(recent)
        && cause.is_none_or(|cause| report.cause() == Some(cause.reason()))
}

/// The report with this name, or the only one whose name begins with it.
fn one(
    reports: Vec<BootstrapReport>,
    typed: &str,
    program: Program,
) -> Result<BootstrapReport, Failure> {
    let (namespace, name) = match typed.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, typed),
    };
    let names: Vec<String> = reports.iter().map(ResourceExt::name_any).collect();
    let (whole, begin): (Vec<_>, Vec<_>) = reports
        .into_iter()
        .filter(|report| namespace.is_none_or(|one| report.namespace().as_deref() == Some(one)))
        .filter(|report| !name.is_empty() && starts(&report.name_any(), name))
        .partition(|report| report.name_any().eq_ignore_ascii_case(name));
    let mut fitting = if whole.is_empty() { begin } else { whole };
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => {
            let list = format!(
                "`{0} reports` lists all reports; `{0} why` accepts the name of a NodeClaim, Node or VM",
                program.typed()
            );
            let near = nearest(name, names.iter().map(String::as_str));
            Err(Failure::usage(format!("no report has the name or prefix `{typed}`")).hint(
                match near {
                    Some(near) => format!("did you mean `{near}`? {list}"),
                    None => list,
                },
            ))
        }
        count => {
            let places: Vec<String> = fitting.iter().take(20).map(bringup_explain::place).collect();
            Err(Failure::usage(format!("`{typed}` matches {count} reports"))
                .detail(places.join(", "))
                .hint("use a longer prefix, or NAMESPACE/NAME"))
        }
    }
}

fn none(known: usize, choice: &Choice) -> String {
    let place = match &choice.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "this cluster".to_owned(),
    };
    match known {
        0 => format!("No reports found in {place}.\n"),
        1 => format!("The 1 report in {place} does not match the filters.\n"),
        _ => format!("None of the {known} reports in {place} matches the filters.\n"),
    }
}

/// The optional columns of a list.
struct Columns {
    namespace: bool,
    /// Kind and cluster, if the list contains Machines.
    kind: bool,
    /// Code and image, if the list contains no Machines, which need the space.
    code: bool,
}

impl Columns {
    fn narrow_for(reports: &[BootstrapReport], namespace: bool) -> Self {
        let kind = reports.iter().any(|report| report.spec.target_ref.kind == MACHINE);
        Self { namespace: namespace || kind, kind, code: !kind }
    }

    fn wide_for(reports: &[BootstrapReport]) -> Self {
        Self { code: true, ..Self::narrow_for(reports, true) }
    }

    /// The values for the columns of this list.
    fn chosen<T>(&self, [namespace, name, kind, cause, code, image, pool]: [T; 7]) -> Vec<T> {
        let namespace = Some(namespace).filter(|_| self.namespace);
        let kind = Some(kind).filter(|_| self.kind);
        let code = [code, image].into_iter().filter(|_| self.code);
        let first = namespace.into_iter().chain([name]).chain(kind).chain([cause]);
        first.chain(code).chain([pool]).collect()
    }

    fn heads(&self, rest: &[&'static str]) -> Vec<&'static str> {
        let pool = if self.kind { "POOL|CLUSTER" } else { "NODEPOOL" };
        let all = ["NAMESPACE", "NAME", "KIND", "CAUSE", "CODE", "IMAGE", pool];
        self.chosen(all).into_iter().chain(rest.iter().copied()).collect()
    }

    fn row(&self, report: &BootstrapReport, cause: String) -> Vec<String> {
        let cse = report.status.as_ref().and_then(|status| status.cse.as_ref());
        let code = cse.and_then(|cse| cse.exit_code).map(|code| code.to_string());
        let pool = images::pool(report).or_else(|| bringup_explain::cluster(report));
        self.chosen([
            cell(report.namespace().as_deref()),
            report.name_any(),
            cell(Some(&report.spec.target_ref.kind)),
            cause,
            cell(code.as_deref()),
            cell(report.spec.image_version.as_deref()),
            cell(pool),
        ])
    }

    fn narrow(&self, reports: &[BootstrapReport], now: Timestamp) -> String {
        let row = |report: &BootstrapReport| {
            let cause = report.cause().unwrap_or("-");
            let cause = match report.phase() {
                Open::Known(Phase::Final) => cause.to_owned(),
                Open::Known(Phase::Lost) => format!("{cause} (lost)"),
                Open::Known(Phase::Superseded) => format!("{cause} (recovered)"),
                Open::Other(phase) => format!("{cause} ({phase})"),
            };
            let mut row = self.row(report, cause);
            row.push(told_age(report, now));
            row
        };
        let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
        table::columns(&self.heads(&["AGE"]), &rows)
    }

    fn wide(&self, reports: &[BootstrapReport], now: Timestamp) -> String {
        let row = |report: &BootstrapReport| {
            let spec = &report.spec;
            let verdict = report.status.as_ref().and_then(|status| status.verdict.as_ref());
            let mut row = self.row(report, cell(report.cause()));
            row.push(cell(spec.node_name.as_deref()));
            row.push(report.phase().to_string());
            row.push(cell(verdict.map(|verdict| verdict.confidence.as_str())));
            row.push(cell(spec.vm_size.as_deref()));
            row.push(cell(spec.zone.as_deref()));
            row.push(cell(spec.provision_mode.as_ref().map(Open::as_str)));
            row.push(told_age(report, now));
            row
        };
        let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
        let rest = ["NODE", "PHASE", "CONFIDENCE", "SIZE", "ZONE", "MODE", "AGE"];
        table::columns(&self.heads(&rest), &rows)
    }
}

fn told_age(report: &BootstrapReport, now: Timestamp) -> String {
    made(report).map_or_else(|| "-".to_owned(), |made| table::age(made.duration_until(now)))
}

/// A dash stands for an unknown value, so that every row has the same number of columns.
fn cell(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

/// A list in the format of kubectl.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Objects<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [BootstrapReport],
}

fn objects(items: &[BootstrapReport]) -> Objects<'_> {
    Objects { api_version: "v1", kind: "List", items }
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n")
}

pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    serde_saphyr::to_string(value).context("cannot write YAML")
}
