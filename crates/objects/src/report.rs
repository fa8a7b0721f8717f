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

/// The attempt that the report is about: the NodeClaim or Machine, its VM, image and Node. It never
/// changes.
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
    doc = "BootstrapReport records why a node did not come up. bringup creates one for each failed attempt and keeps it after the NodeClaim or Machine, the VM and the Node are deleted.",
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
    /// The NodeClaim or Machine whose node did not come up.
    pub target_ref: TargetReference,
    /// The owner of the target: a NodePool, a MachineDeployment or a Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_ref: Option<ParentReference>,
    /// The provider ID of the VM, as in `spec.providerID` of a Node.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The vmId that Azure assigned to the VM. A later VM of the same name has another vmId.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
    /// The number of the attempt to create the VM. It increases when Azure refuses the VM and the
    /// controller tries again.
    // Kubernetes knows no unsigned formats and would warn at every installation.
    #[serde(default)]
    #[schemars(extend("format" = "int32"))]
    pub attempt: u32,
    /// The name of the Node, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The ID of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The version of the image, such as 202601.27.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_version: Option<String>,
    /// The size of the VM, such as `Standard_D4s_v5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_size: Option<String>,
    /// The availability zone of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The Azure region of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The capacity type of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<CapacityType>)]
    pub capacity_type: Option<Open<CapacityType>>,
    /// The way in which the node is bootstrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<ProvisionMode>)]
    pub provision_mode: Option<Open<ProvisionMode>>,
    /// The operating system of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// The time at which the target was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// The object that a report is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// The API version of the object.
    pub api_version: String,
    /// The kind of the object: NodeClaim or Machine.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The UID of the object. A later object of the same name has another UID.
    pub uid: String,
}

/// The owner of the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ParentReference {
    /// The kind of the owner: NodePool, MachineDeployment or Cluster.
    pub kind: String,
    /// The name of the owner.
    pub name: String,
}

/// The verdict and its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportStatus {
    /// The phase of the report. Final: the report has its verdict. Lost: the evidence was deleted before
    /// it could be read. Superseded: the node joined after the verdict.
    #[schemars(transform = describe_words::<Phase>)]
    pub phase: Open<Phase>,
    /// The cause of the failure, and who can fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReportVerdict>,
    /// The result of the Custom Script Extension (CSE) that bootstraps the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cse: Option<CseResult>,
    /// The line of evidence that proves the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_evidence: Option<EvidenceLine>,
    /// Further lines of evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 12))]
    pub evidence: Vec<EvidenceLine>,
    /// Other findings, which are not the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributing: Vec<Contributing>,
    /// The stages of the boot, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
    /// The sources of evidence, and whether each could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
    /// Steps that fix the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remediation: Vec<String>,
    /// The number of secrets that were redacted from the evidence.
    #[serde(default, skip_serializing_if = "Redactions::is_none")]
    pub redactions: Redactions,
    /// The conditions that bringup sets on the target, and the condition Announced, which is True
    /// after the Events about the verdict were created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The time of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// Why the node did not come up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportVerdict {
    /// The cause, in one word. `bringup explain CAUSE` describes it.
    #[schemars(transform = describe_words::<Cause>)]
    pub cause: Open<Cause>,
    /// The area that the cause belongs to.
    #[schemars(transform = describe_words::<Family>)]
    pub family: Open<Family>,
    /// The role that can fix the cause.
    pub owner: String,
    /// Whether a retry without any change can succeed.
    #[schemars(transform = describe_words::<Retryable>)]
    pub retryable: Open<Retryable>,
    /// The confidence in the cause.
    #[schemars(transform = describe_words::<Confidence>)]
    pub confidence: Open<Confidence>,
    /// The cause in one sentence.
    pub title: String,
    /// What seems to be the cause but is not, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Whether the exit code is misleading: it suggests another cause.
    #[serde(default)]
    pub overrules_code: bool,
}

/// The result of the Custom Script Extension (CSE).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CseResult {
    /// The exit code of the bootstrap script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The constant of the exit code, such as `ERR_ORAS_PULL_NETWORK_TIMEOUT`, if it is unambiguous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<String>,
    /// The possible constants of the exit code, if it is ambiguous.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant_candidates: Vec<String>,
    /// The source from which the exit code was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = describe_words::<CodeSource>)]
    pub code_source: Option<Open<CodeSource>>,
    /// The exit status that the extension handler reports. It can differ from the exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_status: Option<i32>,
    /// The version of the extension handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_version: Option<String>,
    /// The provisioning state of the extension in Azure Resource Manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension_state: Option<String>,
    /// The start time of the bootstrap script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The end time of the bootstrap script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// A line of evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceLine {
    /// The source of the line, such as extension message or serial log.
    pub source: String,
    /// The time at which the source was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The line, with secrets redacted.
    #[schemars(length(max = 512))]
    pub line: String,
    /// The lines before it, in a serial log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 512)))]
    pub before: Vec<String>,
    /// The lines after it, in a serial log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 512)))]
    pub after: Vec<String>,
    /// The SHA-256 hash of the whole text that contains the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A finding that is not the cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contributing {
    /// The cause or the constant of the exit code.
    pub cause: String,
    /// The reason why it is not the cause.
    pub line: String,
}

/// A stage of the boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// The time of the stage.
    pub at: Time,
    /// The stage, such as the start of the bootstrap script.
    pub what: String,
}

/// A source of evidence, and whether it could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// The source.
    pub name: String,
    /// The result of reading the source, such as ok, or denied if a permission is missing.
    #[schemars(transform = describe_words::<CollectorState>)]
    pub state: Open<CollectorState>,
    /// Details of the result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// The number of secrets that were redacted, and the rules that found them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redactions {
    /// The number of redacted secrets.
    #[schemars(extend("format" = "int64"))]
    pub count: u64,
    /// The redaction rules that matched.
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
