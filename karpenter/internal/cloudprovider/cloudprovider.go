// Package cloudprovider is Karpenter's CloudProvider for nodes on single Azure VMs. It decides
// nothing: each method is one call to bringup, in its words and back.
package cloudprovider

import (
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/bringup-dev/bringup/karpenter/internal/nodeclass"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// Labels that pools and pods may ask for besides those of Karpenter. It refuses those of which no
// provider says that it knows them.
func init() {
	v1.WellKnownLabels.Insert(
		"karpenter.azure.com/sku-cpu",
		"karpenter.azure.com/sku-memory",
		"karpenter.azure.com/sku-gpu-count",
		"kubernetes.azure.com/sku-cpu",
		"kubernetes.azure.com/sku-memory",
	)
}

// CloudProvider passes on what Karpenter asks.
type CloudProvider struct {
	bringup providerpb.ProviderClient
}

var _ cloudprovider.CloudProvider = (*CloudProvider)(nil)

// New returns the provider that asks this bringup.
func New(bringup providerpb.ProviderClient) *CloudProvider {
	return &CloudProvider{bringup: bringup}
}

// Create starts a VM for a claim.
func (c *CloudProvider) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	answer, err := c.bringup.Create(ctx, &providerpb.CreateRequest{Claim: toClaim(claim)})
	if err != nil {
		return nil, createRefusal(err)
	}
	return fromInstance(answer.GetInstance())
}

// Delete removes the VM of a claim.
func (c *CloudProvider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	_, err := c.bringup.Delete(ctx, &providerpb.DeleteRequest{Claim: toClaim(claim)})
	return refusal("deleting the machine", err)
}

// Get finds a VM.
func (c *CloudProvider) Get(ctx context.Context, providerID string) (*v1.NodeClaim, error) {
	answer, err := c.bringup.Get(ctx, &providerpb.GetRequest{ProviderId: providerID})
	if err != nil {
		return nil, refusal("getting the machine", err)
	}
	return fromInstance(answer.GetInstance())
}

// List finds all VMs. Karpenter deletes claims whose VM is not among them, so one that cannot be
// read whole is listed with what can be read.
func (c *CloudProvider) List(ctx context.Context) ([]*v1.NodeClaim, error) {
	answer, err := c.bringup.List(ctx, &providerpb.ListRequest{})
	if err != nil {
		return nil, refusal("listing machines", err)
	}
	var claims []*v1.NodeClaim
	for _, instance := range answer.GetInstances() {
		claim, err := fromInstance(instance)
		if err != nil {
			log.FromContext(ctx).Error(err, "reading a machine in a list", "provider-id", instance.GetProviderId())
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// GetInstanceTypes returns the sizes that a pool may have. One that cannot be read is left out.
func (c *CloudProvider) GetInstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	answer, err := c.bringup.GetInstanceTypes(ctx, &providerpb.GetInstanceTypesRequest{
		NodePool:  pool.Name,
		NodeClass: className(pool.Spec.Template.Spec.NodeClassRef),
	})
	if err != nil {
		return nil, refusal("getting instance types", err)
	}
	var types []*cloudprovider.InstanceType
	for _, instanceType := range answer.GetInstanceTypes() {
		translated, err := fromInstanceType(instanceType)
		if err != nil {
			log.FromContext(ctx).Error(err, "reading an instance type", "instance-type", instanceType.GetName())
			continue
		}
		types = append(types, translated)
	}
	return types, nil
}

// IsDrifted says why a VM is no longer as its class says, or nothing.
func (c *CloudProvider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	answer, err := c.bringup.IsDrifted(ctx, &providerpb.IsDriftedRequest{Claim: toClaim(claim)})
	if err != nil {
		return "", refusal(fmt.Sprintf("asking whether %s has drifted", claim.Name), err)
	}
	return cloudprovider.DriftReason(answer.GetReason()), nil
}

// RepairPolicies are none: bringup says what is wrong with a node, and a person decides.
func (c *CloudProvider) RepairPolicies() []cloudprovider.RepairPolicy {
	return nil
}

// Name is what Karpenter's metrics call this provider.
func (c *CloudProvider) Name() string {
	return "azure-flex"
}

// GetSupportedNodeClasses makes Karpenter leave alone whatever is of another class.
func (c *CloudProvider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&nodeclass.AzureFlexNodeClass{}}
}
