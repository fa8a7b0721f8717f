//! The fields of each kind that get extreme values. Lists in the objects are as long as the pointers
//! need.

use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy as _};
use serde_json::{Value, json};

use super::{
    Field, any_value, label, message, micro_stamp, number, provider_id, stamp, status, word,
};

/// The labels and annotations that bringup reads, and the other metadata.
fn metadata() -> Vec<Field> {
    vec![
        ("/metadata/labels/karpenter.sh~1capacity-type", label()),
        ("/metadata/labels/node.kubernetes.io~1instance-type", label()),
        ("/metadata/labels/topology.kubernetes.io~1zone", label()),
        ("/metadata/labels/topology.kubernetes.io~1region", label()),
        ("/metadata/labels/kubernetes.io~1os", label()),
        ("/metadata/annotations/karpenter.azure.com~1aks-machine-resource-id", provider_id()),
        ("/metadata/annotations/a", message()),
        ("/metadata/managedFields", managed_fields()),
        ("/metadata/creationTimestamp", stamp()),
        ("/metadata/deletionTimestamp", stamp()),
        ("/metadata/generation", number()),
        ("/metadata/ownerReferences", any_value()),
    ]
}

/// Managed fields: which client wrote what, and when. Clients may send them.
fn managed_fields() -> BoxedStrategy<Value> {
    stamp()
        .prop_map(|time| {
            json!([{
                "manager": "karpenter", "operation": "Update", "apiVersion": "v1", "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:labels": {} } },
            }])
        })
        .boxed()
}

/// The fields of the first two conditions of a status.
fn conditions() -> Vec<Field> {
    vec![
        ("/status/conditions/0/lastTransitionTime", stamp()),
        ("/status/conditions/0/status", status()),
        ("/status/conditions/0/reason", word()),
        ("/status/conditions/0/message", message()),
        ("/status/conditions/0/observedGeneration", number()),
        ("/status/conditions/0/severity", word()),
        ("/status/conditions/1/lastTransitionTime", stamp()),
        ("/status/conditions/1/status", status()),
        ("/status/conditions/1/reason", word()),
        ("/status/conditions/1/message", message()),
        ("/status/conditions/1/type", word()),
    ]
}

/// A valid condition.
pub(crate) fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": "so it is",
            "lastTransitionTime": "2026-01-27T14:32:00Z" })
}

/// The extreme fields of a NodeClaim, without its status.
pub(crate) fn claim() -> Vec<Field> {
    let mut fields = metadata();
    fields.push(("/spec/nodeClassRef/name", word()));
    fields.push(("/spec/expireAfter", word()));
    fields.push(("/spec/terminationGracePeriod", word()));
    fields
}

/// The extreme fields of a NodeClaim's status.
pub(crate) fn claim_status() -> Vec<Field> {
    let mut fields = conditions();
    fields.push(("/status/providerID", provider_id()));
    fields.push(("/status/nodeName", word()));
    fields.push(("/status/imageID", word()));
    fields.push(("/status/lastPodEventTime", stamp()));
    fields.push(("/status/conditions/1", any_value()));
    fields
}

/// The extreme fields of a Node.
pub(crate) fn node() -> Vec<Field> {
    let mut fields = metadata();
    fields.extend(conditions());
    fields.extend([
        ("/spec/providerID", provider_id()),
        ("/spec/taints/0/timeAdded", stamp()),
        ("/spec/taints/0/value", label()),
        ("/status/conditions/0/lastHeartbeatTime", stamp()),
        ("/status/conditions/1/lastHeartbeatTime", stamp()),
        ("/status/addresses", any_value()),
        ("/status/addresses/0/address", word()),
        ("/status/addresses/0/type", word()),
        ("/status/nodeInfo/kubeletVersion", word()),
        ("/status/daemonEndpoints/kubeletEndpoint/Port", number()),
    ]);
    fields
}

/// The extreme fields of an Event of Karpenter, in the group `events.k8s.io`.
pub(crate) fn event() -> Vec<Field> {
    vec![
        ("/note", message()),
        ("/eventTime", micro_stamp()),
        ("/deprecatedFirstTimestamp", stamp()),
        ("/deprecatedLastTimestamp", stamp()),
        ("/deprecatedCount", number()),
        ("/series/count", number()),
        ("/series/lastObservedTime", micro_stamp()),
        ("/regarding/uid", word()),
        ("/regarding/name", word()),
        ("/regarding/apiVersion", word()),
        ("/regarding/resourceVersion", word()),
        ("/regarding/fieldPath", word()),
        ("/related", any_value()),
        ("/reportingController", word()),
        ("/reportingInstance", word()),
        ("/action", word()),
        ("/metadata/managedFields", managed_fields()),
    ]
}

/// The same for an Event in the older form.
pub(crate) fn old_event() -> Vec<Field> {
    vec![
        ("/message", message()),
        ("/firstTimestamp", stamp()),
        ("/lastTimestamp", stamp()),
        ("/eventTime", micro_stamp()),
        ("/count", number()),
        ("/series/count", number()),
        ("/series/lastObservedTime", micro_stamp()),
        ("/involvedObject/uid", word()),
        ("/involvedObject/name", word()),
        ("/source", any_value()),
        ("/source/component", word()),
        ("/metadata/managedFields", managed_fields()),
    ]
}

/// The extreme fields of a BootstrapReport.
pub(crate) fn report() -> Vec<Field> {
    let mut fields = conditions();
    fields.extend([
        ("/metadata/managedFields", managed_fields()),
        ("/metadata/labels/bringup.dev~1cause", label()),
        ("/spec/targetRef/apiVersion", word()),
        ("/spec/targetRef/kind", word()),
        ("/spec/targetRef/name", word()),
        ("/spec/targetRef/uid", word()),
        ("/spec/parentRef/kind", word()),
        ("/spec/parentRef/name", word()),
        ("/spec/providerID", provider_id()),
        ("/spec/vmId", word()),
        ("/spec/attempt", number()),
        ("/spec/nodeName", word()),
        ("/spec/image", message()),
        ("/spec/imageVersion", word()),
        ("/spec/vmSize", word()),
        ("/spec/zone", word()),
        ("/spec/region", word()),
        ("/spec/capacityType", word()),
        ("/spec/provisionMode", word()),
        ("/spec/os", word()),
        ("/spec/createdAt", stamp()),
        ("/status", any_value()),
        ("/status/phase", word()),
        ("/status/finishedAt", stamp()),
        ("/status/verdict/cause", word()),
        ("/status/verdict/confidence", word()),
        ("/status/verdict/title", message()),
        ("/status/verdict/overrulesCode", any_value()),
        ("/status/cse/exitCode", number()),
        ("/status/cse/outerStatus", number()),
        ("/status/cse/constant", word()),
        ("/status/cse/startedAt", stamp()),
        ("/status/cse/endedAt", stamp()),
        ("/status/rootEvidence/line", message()),
        ("/status/rootEvidence/at", stamp()),
        ("/status/timeline/0/at", stamp()),
        ("/status/timeline/0/what", message()),
        ("/status/collectors/0/state", word()),
        ("/status/collectors/0/name", message()),
        ("/status/remediation/0", message()),
        ("/status/redactions/count", number()),
        ("/status/redactions/rules/0", message()),
        ("/status/contributing/0/cause", message()),
    ]);
    fields
}

/// A valid report, of any phase.
pub(crate) fn report_of(
    nth: usize,
    target: &Value,
    parent: &Value,
    provider_id: &str,
    now: Timestamp,
) -> Value {
    let phase = ["Final", "Lost", "Collecting", "Superseded"][nth % 4];
    let now = now.to_string();
    json!({
        "apiVersion": "bringup.dev/v1alpha1", "kind": "BootstrapReport",
        "metadata": { "name": format!("report-{nth}"), "labels": {} },
        "spec": {
            "targetRef": target, "parentRef": parent, "providerID": provider_id,
            "attempt": 1, "createdAt": now,
        },
        "status": {
            "phase": phase, "finishedAt": now,
            "verdict": { "cause": "Unknown", "family": "unknown", "owner": "you", "retryable": "maybe",
                         "confidence": "low", "title": "it is not known", "overrulesCode": false },
            "cse": { "exitCode": 50 },
            "rootEvidence": { "source": "console", "line": "x" },
            "timeline": [{ "at": now, "what": "verdict" }],
            "collectors": [{ "name": "console", "state": "ok" }],
            "contributing": [{ "cause": "x", "line": "y" }],
            "remediation": ["do"], "redactions": { "count": 1, "rules": ["token"] },
            "conditions": [
                condition("BootstrapSucceeded", "False", "Unknown"),
                condition("CSEProvisioned", "False", "CSEFailed"),
            ],
        },
    })
}

/// The extreme fields of a Machine of Cluster API, without its status.
pub(crate) fn machine() -> Vec<Field> {
    vec![
        ("/metadata/labels/cluster.x-k8s.io~1deployment-name", label()),
        ("/metadata/labels/cluster.x-k8s.io~1control-plane", label()),
        ("/metadata/annotations/a", message()),
        ("/metadata/managedFields", managed_fields()),
        ("/metadata/ownerReferences", any_value()),
        ("/spec/clusterName", word()),
        ("/spec/providerID", provider_id()),
        ("/spec/version", word()),
        ("/spec/failureDomain", word()),
        ("/spec/bootstrap/dataSecretName", word()),
        ("/spec/infrastructureRef/kind", word()),
        ("/spec/infrastructureRef/name", word()),
        ("/spec/readinessGates", any_value()),
        ("/spec/minReadySeconds", number()),
        ("/spec/deletion/nodeDrainTimeoutSeconds", number()),
        ("/spec/deletion/nodeDeletionTimeoutSeconds", number()),
    ]
}

/// The extreme fields of a Machine's status.
pub(crate) fn machine_status() -> Vec<Field> {
    let mut fields = conditions();
    fields.extend([
        ("/status/nodeRef/name", word()),
        ("/status/nodeInfo/kubeletVersion", word()),
        ("/status/lastUpdated", stamp()),
        ("/status/certificatesExpiryDate", stamp()),
        ("/status/addresses", any_value()),
        ("/status/phase", word()),
        ("/status/initialization/infrastructureProvisioned", any_value()),
        ("/status/deletion/nodeDrainStartTime", stamp()),
        ("/status/deletion/waitForNodeVolumeDetachStartTime", stamp()),
        ("/status/deprecated/v1beta1/failureReason", word()),
        ("/status/deprecated/v1beta1/failureMessage", message()),
        ("/status/deprecated/v1beta1/conditions/0/lastTransitionTime", stamp()),
        ("/status/observedGeneration", number()),
    ]);
    fields
}

/// The extreme fields of an AzureMachine or an `AzureMachinePoolMachine`, without its status.
pub(crate) fn azure_machine() -> Vec<Field> {
    vec![
        ("/metadata/annotations/a", message()),
        ("/metadata/managedFields", managed_fields()),
        ("/metadata/ownerReferences", any_value()),
        ("/spec/providerID", provider_id()),
        ("/spec/instanceID", word()),
        ("/spec/vmSize", word()),
        ("/spec/failureDomain", word()),
        ("/spec/osDisk/osType", word()),
        ("/spec/osDisk/diskSizeGB", number()),
        ("/spec/sshPublicKey", message()),
        ("/spec/spotVMOptions", any_value()),
    ]
}

/// The extreme fields of the status of either.
pub(crate) fn azure_machine_status() -> Vec<Field> {
    let mut fields = conditions();
    fields.extend([
        ("/status/failureReason", word()),
        ("/status/failureMessage", message()),
        ("/status/vmState", word()),
        ("/status/provisioningState", word()),
        ("/status/addresses", any_value()),
        ("/status/nodeRef", any_value()),
        ("/status/version", word()),
        ("/status/instanceName", word()),
        ("/status/longRunningOperationStates", any_value()),
        ("/status/v1beta2/conditions/0/lastTransitionTime", stamp()),
    ]);
    fields
}

/// The extreme fields of an AzureFlexNodeClass and its status.
pub(crate) fn flex_class() -> Vec<Field> {
    vec![
        ("/spec/subscriptionID", word()),
        ("/spec/location", word()),
        ("/spec/resourceGroup", word()),
        ("/spec/subnetID", provider_id()),
        ("/spec/imageID", provider_id()),
        ("/spec/imageReference/version", word()),
        ("/spec/osDiskSizeGB", number()),
        ("/spec/maxPodsPerNode", number()),
        ("/spec/kubernetesVersion", word()),
        ("/spec/bootTimeout", word()),
        ("/spec/launchTimeout", word()),
        ("/spec/tags/a", message()),
        ("/spec/tags/b", label()),
        ("/spec/hunting/maxAttemptsPerHour", number()),
        ("/spec/zones", any_value()),
        ("/metadata/annotations/a", message()),
        ("/metadata/managedFields", managed_fields()),
    ]
}

/// The extreme fields of the status of an AzureFlexNodeClass.
pub(crate) fn flex_class_status() -> Vec<Field> {
    conditions()
}

/// The extreme fields of an `AzureFlexMachine`, without its status.
pub(crate) fn flex_machine() -> Vec<Field> {
    vec![
        ("/spec/nodeClass", word()),
        ("/spec/vmSize", word()),
        ("/spec/zone", word()),
        ("/spec/capacityType", word()),
        ("/spec/nodePool", word()),
        ("/spec/claimRef/name", word()),
        ("/spec/claimRef/uid", word()),
        ("/spec/labels/a", message()),
        ("/spec/labels/b", label()),
        ("/spec/taints/0", message()),
        ("/metadata/annotations/a", message()),
        ("/metadata/managedFields", managed_fields()),
        ("/metadata/finalizers", any_value()),
    ]
}

/// The extreme fields of the status of an `AzureFlexMachine`.
pub(crate) fn flex_machine_status() -> Vec<Field> {
    let mut fields = conditions();
    fields.extend([
        ("/status/phase", phase()),
        ("/status/attempt", number()),
        ("/status/providerID", provider_id()),
        ("/status/vmId", word()),
        ("/status/vmAttemptAt", stamp()),
        ("/status/nicReservedUntil", stamp()),
        ("/status/createdAt", stamp()),
        ("/status/acceptedAt", stamp()),
        ("/status/completedAt", stamp()),
        ("/status/deleteRequestedAt", stamp()),
        ("/status/retryAt", stamp()),
        ("/status/call/startedAt", stamp()),
        ("/status/call/notBefore", stamp()),
        ("/status/call/failures", number()),
        ("/status/call/operationUrl", provider_id()),
        ("/status/call/lastError", message()),
        ("/status/failure/class", word()),
        ("/status/failure/cause", word()),
        ("/status/failure/message", message()),
        ("/status/place", any_value()),
    ]);
    fields
}

fn phase() -> BoxedStrategy<Value> {
    let phases = vec![
        "Planned",
        "NicPut",
        "NicReady",
        "VmPut",
        "VmAccepted",
        "Running",
        "CleanVm",
        "CleanNic",
        "CleanDisk",
        "Gone",
        "Other",
    ];
    proptest::sample::select(phases).prop_map(|phase| json!(phase)).boxed()
}
