package nodeclass_test

import (
	"encoding/json"
	"testing"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"

	"github.com/bringup-dev/bringup/karpenter/internal/nodeclass"
)

const notReady = `{
  "apiVersion": "flex.aks.azure.com/v1alpha1", "kind": "AzureFlexNodeClass",
  "metadata": {"name": "h200", "labels": {"a": "b"}},
  "spec": {"location": "eastus2"},
  "status": {"conditions": [
    {"type": "ValidationSucceeded", "status": "True", "reason": "ValidationSucceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    {"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": "AzureAccess=False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
  ]}
}`

func read(t *testing.T, text string) *nodeclass.AzureFlexNodeClass {
	t.Helper()
	class := &nodeclass.AzureFlexNodeClass{}
	if err := json.Unmarshal([]byte(text), class); err != nil {
		t.Fatal(err)
	}
	return class
}

func TestKarpenterSeesWhetherAClassIsReadyAndWhyNot(t *testing.T) {
	ready := read(t, notReady).StatusConditions().Get(status.ConditionReady)
	if !ready.IsFalse() || ready.Reason != "UnhealthyDependents" || ready.Message != "AzureAccess=False" {
		t.Errorf("%v", ready)
	}
	if ready := read(t, `{}`).StatusConditions().Get(status.ConditionReady); !ready.IsUnknown() {
		t.Errorf("%v", ready)
	}
}

func TestTheClassIsKnownByItsGroupAndKind(t *testing.T) {
	if kind := object.GVK(&nodeclass.AzureFlexNodeClass{}); kind.String() != "flex.aks.azure.com/v1alpha1, Kind=AzureFlexNodeClass" {
		t.Errorf("%s", kind)
	}
}

func TestACopySharesNothing(t *testing.T) {
	list := &nodeclass.AzureFlexNodeClassList{Items: []nodeclass.AzureFlexNodeClass{*read(t, notReady)}}
	copied := list.DeepCopyObject().(*nodeclass.AzureFlexNodeClassList)
	copied.Items[0].Labels["a"] = "changed"
	copied.Items[0].Status.Conditions[0].Reason = "changed"
	if original := list.Items[0]; original.Labels["a"] != "b" || original.Status.Conditions[0].Reason != "ValidationSucceeded" {
		t.Errorf("%v", original)
	}
	if len(copied.Items) != 1 || copied.Items[0].Name != "h200" {
		t.Errorf("%v", copied)
	}
}
