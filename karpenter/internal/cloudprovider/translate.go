package cloudprovider

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

func toClaim(claim *v1.NodeClaim) *providerpb.Claim {
	return &providerpb.Claim{
		Name:          claim.Name,
		Uid:           string(claim.UID),
		Labels:        claim.Labels,
		Annotations:   claim.Annotations,
		NodeClass:     className(claim.Spec.NodeClassRef),
		NodePool:      claim.Labels[v1.NodePoolLabelKey],
		ProviderId:    claim.Status.ProviderID,
		Requirements:  toRequirements(claim.Spec.Requirements),
		Requests:      toQuantities(claim.Spec.Resources.Requests),
		Taints:        toTaints(claim.Spec.Taints),
		StartupTaints: toTaints(claim.Spec.StartupTaints),
	}
}

func className(reference *v1.NodeClassReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

func toRequirements(requirements []v1.NodeSelectorRequirementWithMinValues) []*providerpb.Requirement {
	var messages []*providerpb.Requirement
	for _, requirement := range requirements {
		message := &providerpb.Requirement{Key: requirement.Key, Operator: string(requirement.Operator), Values: requirement.Values}
		if requirement.MinValues != nil {
			atLeast := int32(*requirement.MinValues)
			message.MinValues = &atLeast
		}
		messages = append(messages, message)
	}
	return messages
}

func toQuantities(resources corev1.ResourceList) map[string]string {
	quantities := map[string]string{}
	for name, quantity := range resources {
		quantities[string(name)] = quantity.String()
	}
	return quantities
}

func toTaints(taints []corev1.Taint) []*providerpb.Taint {
	var messages []*providerpb.Taint
	for _, taint := range taints {
		messages = append(messages, &providerpb.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
	}
	return messages
}

// fromInstance returns no claim if the instance cannot be told from others, and both a claim and an
// error if only some of it could not be read.
func fromInstance(instance *providerpb.Instance) (*v1.NodeClaim, error) {
	if instance.GetProviderId() == "" {
		return nil, fmt.Errorf("the machine of claim %q came without a provider id", instance.GetClaim())
	}
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        instance.GetClaim(),
			Labels:      instance.GetLabels(),
			Annotations: instance.GetAnnotations(),
		},
		Status: v1.NodeClaimStatus{ProviderID: instance.GetProviderId(), ImageID: instance.GetImageId()},
	}
	if created := instance.GetCreatedAt(); created != nil {
		claim.CreationTimestamp = metav1.NewTime(created.AsTime())
	}
	if instance.GetDeleting() {
		now := metav1.Now()
		claim.DeletionTimestamp = &now
	}
	var capacity, allocatable error
	claim.Status.Capacity, capacity = fromQuantities(instance.GetCapacity())
	claim.Status.Allocatable, allocatable = fromQuantities(instance.GetAllocatable())
	return claim, errors.Join(capacity, allocatable)
}

func fromInstanceType(message *providerpb.InstanceType) (*cloudprovider.InstanceType, error) {
	requirements, err := fromRequirements(message.GetRequirements())
	if err != nil {
		return nil, err
	}
	instanceType := &cloudprovider.InstanceType{
		Name:         message.GetName(),
		Requirements: requirements,
		Overhead:     &cloudprovider.InstanceTypeOverhead{},
	}
	for _, offering := range message.GetOfferings() {
		requirements, err := fromRequirements(offering.GetRequirements())
		if err != nil {
			return nil, err
		}
		instanceType.Offerings = append(instanceType.Offerings, &cloudprovider.Offering{
			Requirements: requirements,
			Price:        offering.GetPrice(),
			Available:    offering.GetAvailable(),
		})
	}
	for _, list := range []struct {
		resources *corev1.ResourceList
		message   map[string]string
	}{
		{&instanceType.Capacity, message.GetCapacity()},
		{&instanceType.Overhead.KubeReserved, message.GetKubeReserved()},
		{&instanceType.Overhead.SystemReserved, message.GetSystemReserved()},
		{&instanceType.Overhead.EvictionThreshold, message.GetEvictionThreshold()},
	} {
		if *list.resources, err = fromQuantities(list.message); err != nil {
			return nil, err
		}
	}
	return instanceType, nil
}

func fromRequirements(messages []*providerpb.Requirement) (scheduling.Requirements, error) {
	requirements := scheduling.NewRequirements()
	for _, message := range messages {
		operator := corev1.NodeSelectorOperator(message.GetOperator())
		if err := check(operator, message.GetValues()); err != nil {
			return nil, fmt.Errorf("requirement %s: %w", message.GetKey(), err)
		}
		var atLeast *int
		if message.MinValues != nil {
			value := int(message.GetMinValues())
			atLeast = &value
		}
		requirements.Add(scheduling.NewRequirementWithFlexibility(message.GetKey(), operator, atLeast, message.GetValues()...))
	}
	return requirements, nil
}

// check finds what Karpenter takes to have been checked by the API server, and dies of otherwise.
func check(operator corev1.NodeSelectorOperator, values []string) error {
	switch operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return nil
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, v1.NodeSelectorOpGte, v1.NodeSelectorOpLte:
		if len(values) != 1 {
			return fmt.Errorf("%s has %d values instead of one", operator, len(values))
		}
		_, err := strconv.Atoi(values[0])
		return err
	default:
		return fmt.Errorf("there is no operator %q", operator)
	}
}

// fromQuantities returns what it can read, even with an error.
func fromQuantities(messages map[string]string) (corev1.ResourceList, error) {
	resources := corev1.ResourceList{}
	var unreadable []error
	for name, text := range messages {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("%s of %s: %w", text, name, err))
			continue
		}
		resources[corev1.ResourceName(name)] = quantity
	}
	return resources, errors.Join(unreadable...)
}
