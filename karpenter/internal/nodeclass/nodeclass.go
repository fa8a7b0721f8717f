// Package nodeclass is AzureFlexNodeClass as far as Karpenter looks at it: that it is there, and
// whether it is ready. What is in it concerns bringup alone, which also writes its status.
package nodeclass

import (
	"slices"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// GroupVersion is where the class is served.
var GroupVersion = schema.GroupVersion{Group: "flex.aks.azure.com", Version: "v1alpha1"}

// Karpenter finds the kinds of its provider in client-go's own scheme.
func init() {
	metav1.AddToGroupVersion(scheme.Scheme, GroupVersion)
	scheme.Scheme.AddKnownTypes(GroupVersion, &AzureFlexNodeClass{}, &AzureFlexNodeClassList{})
}

// AzureFlexNodeClass says what nodes are like. It has no spec here, so it must never be written back.
type AzureFlexNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// Status is what bringup found out about a class.
type Status struct {
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// AzureFlexNodeClassList is what a list call answers.
type AzureFlexNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AzureFlexNodeClass `json:"items"`
}

// StatusConditions has no dependents: bringup has already worked out what Ready follows from.
func (in *AzureFlexNodeClass) StatusConditions(options ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(in, options...)
}

// GetConditions is part of status.Object.
func (in *AzureFlexNodeClass) GetConditions() []status.Condition {
	return in.Status.Conditions
}

// SetConditions is part of status.Object.
func (in *AzureFlexNodeClass) SetConditions(conditions []status.Condition) {
	in.Status.Conditions = conditions
}

// DeepCopyObject is part of runtime.Object.
func (in *AzureFlexNodeClass) DeepCopyObject() runtime.Object {
	out := &AzureFlexNodeClass{TypeMeta: in.TypeMeta}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(in.Status.Conditions)
	return out
}

// DeepCopyObject is part of runtime.Object.
func (in *AzureFlexNodeClassList) DeepCopyObject() runtime.Object {
	out := &AzureFlexNodeClassList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for index := range in.Items {
		out.Items = append(out.Items, *in.Items[index].DeepCopyObject().(*AzureFlexNodeClass))
	}
	return out
}
