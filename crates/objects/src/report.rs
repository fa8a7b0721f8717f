//! The BootstrapReport: what is known of a failed attempt, kept when claim, VM and Node are gone.
//!
//! A report is created whole, status included, in one write: its definition has no status
//! subresource on purpose, since the evidence may be gone before a second write.

use bringup_contract::cse::CodeSource;
use bringup_contract::flex::CapacityType;
use bringup_contract::open::describe_words;
pub use bringup_contract::report::{CollectorState, Confidence, Phase, ProvisionMode};
use bringup_contract::{Cause, Family, Open, Retryable};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The label with the uid of the object that the report is about.
pub const TARGET_UID_LABEL: &str = "bringup.dev/target-uid";
/// The label with the cause.
pub const CAUSE_LABEL: &str = "bringup.dev/cause";
/// The label with the image's version.
pub const IMAGE_LABEL: &str = "bringup.dev/image";
/// The label of definitions whose objects `clusterctl move` knows.
pub const MOVED_DEFINITION_LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// The label of objects that it takes along.
pub const MOVED_LABEL: &str = "clusterctl.cluster.x-k8s.io/move";
/// The condition of a report whose verdict has been announced: Events are made once.
pub const ANNOUNCED: &str = "Announced";
/// How many lines of evidence a report keeps.
pub const MOST_LINES: usize = 12;
/// How long a line of evidence may be, in bytes.
pub const LONGEST_LINE: usize = 512;
/// How much text a report may hold.
pub const MOST_TEXT: usize = 16 * 1024;

/// Which attempt a report is about. It never changes.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bringup.dev",
    version = "v1alpha1",
    kind = "BootstrapReport",
    namespaced,
    status = "ReportStatus",
    shortname = "bsr",
    category = "bringup",
    derive = "PartialEq",
    doc = "Why a node did not come up: what is known of one attempt, kept when the node is gone.",
    printcolumn = r#"{"name":"Cause","type":"string","jsonPath":".status.verdict.cause"}"#,
    printcolumn = r#"{"name":"Code","type":"integer","jsonPath":".status.cse.exitCode"}"#,
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.imageVersion"}"#,
    printcolumn = r#"{"name":"Size","type":"string","jsonPath":".spec.vmSize"}"#,
    printcolumn = r#"{"name":"Zone","type":"string","jsonPath":".spec.zone"}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.targetRef.name"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ReportSpec {
    /// The NodeClaim or Machine.
    pub target_ref: TargetReference,
    /// What the target belongs to: a NodePool, a MachineDeployment, a Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_ref: Option<ParentReference>,
    /// The VM as Kubernetes names it.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The VM's own id, which a VM of the same name made later does not share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
    /// Which attempt to make its VM: what Azure refused may be tried again.
    // Kubernetes knows no unsigned formats and would warn at every installation.
    #[serde(default)]
    #[schemars(extend("format" = "int32"))]
    pub attempt: u32,
    /// The Node's name, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The image's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_version: Option<String>,
    /// The VM's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_size: Option<String>,
    /// Its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How Azure sells the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<CapacityType>)]
    pub capacity_type: Option<Open<CapacityType>>,
    /// How the node bootstraps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<ProvisionMode>)]
    pub provision_mode: Option<Open<ProvisionMode>>,
    /// The operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// When the target was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// The object that a report is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid, which an object of the same name made later does not share.
    pub uid: String,
}

/// What the target belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ParentReference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportStatus {
    /// How far the report has come.
    #[schemars(transform = describe_words::<Phase>)]
    pub phase: Open<Phase>,
    /// The verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReportVerdict>,
    /// What the Custom Script extension said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cse: Option<CseResult>,
    /// The line that the verdict rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_evidence: Option<EvidenceLine>,
    /// Further lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 12))]
    pub evidence: Vec<EvidenceLine>,
    /// What else was seen and is not the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributing: Vec<Contributing>,
    /// The stages of the boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
    /// Where evidence was looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remediation: Vec<String>,
    /// How often secrets were removed.
    #[serde(default, skip_serializing_if = "Redactions::is_none")]
    pub redactions: Redactions,
    /// The conditions that the target bears, and how far the verdict has been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// When the verdict was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// Why the node did not come up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportVerdict {
    /// Why the node did not come up, in one word. `bringup explain` describes each.
    #[schemars(transform = describe_words::<Cause>)]
    pub cause: Open<Cause>,
    /// The area that the cause belongs to.
    #[schemars(transform = describe_words::<Family>)]
    pub family: Open<Family>,
    /// Who can do something about it.
    pub owner: String,
    /// Whether the same attempt may work later, without any change.
    #[schemars(transform = describe_words::<Retryable>)]
    pub retryable: Open<Retryable>,
    /// How sure the cause is.
    #[schemars(transform = describe_words::<Confidence>)]
    pub confidence: Open<Confidence>,
    /// The verdict in a sentence.
    pub title: String,
    /// What seemed to be the case and is not, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The exit code points elsewhere.
    #[serde(default)]
    pub overrules_code: bool,
}

/// What the Custom Script extension said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CseResult {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Its name, where it is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<String>,
    /// The names it can have, where it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant_candidates: Vec<String>,
    /// Where the exit code was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<CodeSource>)]
    pub code_source: Option<Open<CodeSource>>,
    /// The exit status that the handler saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_status: Option<i32>,
    /// The handler's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_version: Option<String>,
    /// What ARM says of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension_state: Option<String>,
    /// When the script started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// A line of evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceLine {
    /// Where it stands: extension message, serial log, …
    pub source: String,
    /// When it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The line, without secrets.
    #[schemars(length(max = 512))]
    pub line: String,
    /// What stands before it, of a serial log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 512)))]
    pub before: Vec<String>,
    /// What stands after it, of a serial log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 512)))]
    pub after: Vec<String>,
    /// The hash of the text that it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Something else that was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contributing {
    /// The cause or constant.
    pub cause: String,
    /// Why it is not the cause.
    pub line: String,
}

/// A moment of the boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// When.
    pub at: Time,
    /// What.
    pub what: String,
}

/// Where evidence was looked for, and with what success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// What was asked.
    pub name: String,
    /// What came of it.
    #[schemars(transform = describe_words::<CollectorState>)]
    pub state: Open<CollectorState>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// How often secrets were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redactions {
    /// How often.
    #[schemars(extend("format" = "int64"))]
    pub count: u64,
    /// By which rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl Redactions {
    fn is_none(&self) -> bool {
        self.count == 0
    }
}

impl BootstrapReport {
    /// How far it has come.
    pub fn phase(&self) -> Open<Phase> {
        self.status.as_ref().map(|status| status.phase.clone()).unwrap_or_default()
    }

    /// The cause, once there is a verdict.
    pub fn cause(&self) -> Option<&str> {
        Some(self.status.as_ref()?.verdict.as_ref()?.cause.as_str())
    }

    /// Whether its verdict has been told: the Events exist.
    pub fn is_announced(&self) -> bool {
        let conditions = self.status.as_ref().map_or(&[][..], |status| &status.conditions);
        crate::condition::find(conditions, ANNOUNCED)
            .is_some_and(|announced| Some(announced.reason.as_str()) == self.announcement())
    }

    /// What an announcement would be of. A verdict that changes is announced anew.
    pub fn announcement(&self) -> Option<&str> {
        match self.phase() {
            Open::Known(Phase::Superseded) => Some("NodeRegistered"),
            Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => self.cause(),
        }
    }

    /// Whether it is of an attempt at which Azure refused to create the VM, so that there is none.
    pub fn is_of_refusal(&self) -> bool {
        self.spec.provision_mode == Some(ProvisionMode::Standalone.into())
            && self.spec.vm_id.is_none()
    }

    /// When the verdict was reached.
    pub fn finished_at(&self) -> Option<Timestamp> {
        Some(self.status.as_ref()?.finished_at.as_ref()?.0)
    }
}

/// The definition as it is installed: without a status subresource, and known to `clusterctl move`,
/// which looks at no definition without the label.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = BootstrapReport::crd();
    let labels = [(MOVED_DEFINITION_LABEL.to_owned(), String::new())];
    definition.metadata.labels = Some(labels.into());
    for version in &mut definition.spec.versions {
        version.subresources = None;
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_shows_the_cause_first_and_has_no_status_of_its_own() {
        let definition = definition();
        let version = &definition.spec.versions[0];
        assert!(version.subresources.is_none());
        let columns = version.additional_printer_columns.as_ref().unwrap();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["Cause", "Code", "Image", "Size", "Zone", "Target", "Phase", "Age"]);
        assert_eq!(definition.spec.names.short_names.as_deref(), Some(&["bsr".to_owned()][..]));
    }
}
