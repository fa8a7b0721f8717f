package cloudprovider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

const providerID = "azure-flex:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/h200-x7k2p"

func claim() *v1.NodeClaim {
	atLeast := 2
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "h200-x7k2p",
			UID:         "3f1e2d4c-0000-4000-8000-000000000001",
			Labels:      map[string]string{v1.NodePoolLabelKey: "h200", "team": "research"},
			Annotations: map[string]string{"note": "keep"},
		},
		Spec: v1.NodeClaimSpec{
			NodeClassRef: &v1.NodeClassReference{Group: "flex.aks.azure.com", Kind: "AzureFlexNodeClass", Name: "h200-eastus2"},
			Requirements: []v1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_ND96isr_H200_v5", "Standard_D8s_v5"}, MinValues: &atLeast},
				{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"b"}},
				{Key: "c", Operator: corev1.NodeSelectorOpExists},
				{Key: "d", Operator: corev1.NodeSelectorOpDoesNotExist},
				{Key: "e", Operator: v1.NodeSelectorOpGte, Values: []string{"8"}},
				{Key: "f", Operator: v1.NodeSelectorOpLte, Values: []string{"64"}},
			},
			Resources: v1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1500m"),
				corev1.ResourceMemory: resource.MustParse("1Gi"),
				"nvidia.com/gpu":      resource.MustParse("8"),
			}},
			Taints:        []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}},
			StartupTaints: []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoExecute}},
		},
		Status: v1.NodeClaimStatus{ProviderID: providerID},
	}
}

func claimMessage() *providerpb.Claim {
	return &providerpb.Claim{
		Name:        "h200-x7k2p",
		Uid:         "3f1e2d4c-0000-4000-8000-000000000001",
		Labels:      map[string]string{"karpenter.sh/nodepool": "h200", "team": "research"},
		Annotations: map[string]string{"note": "keep"},
		NodeClass:   "h200-eastus2",
		NodePool:    "h200",
		ProviderId:  providerID,
		Requirements: []*providerpb.Requirement{
			{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"Standard_ND96isr_H200_v5", "Standard_D8s_v5"}, MinValues: proto.Int32(2)},
			{Key: "a", Operator: "NotIn", Values: []string{"b"}},
			{Key: "c", Operator: "Exists"},
			{Key: "d", Operator: "DoesNotExist"},
			{Key: "e", Operator: "Gte", Values: []string{"8"}},
			{Key: "f", Operator: "Lte", Values: []string{"64"}},
		},
		Requests:      map[string]string{"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8"},
		Taints:        []*providerpb.Taint{{Key: "sku", Value: "gpu", Effect: "NoSchedule"}},
		StartupTaints: []*providerpb.Taint{{Key: "starting", Effect: "NoExecute"}},
	}
}

func instance() *providerpb.Instance {
	return &providerpb.Instance{
		ProviderId:  providerID,
		Claim:       "h200-x7k2p",
		Labels:      map[string]string{corev1.LabelInstanceTypeStable: "Standard_ND96isr_H200_v5"},
		Annotations: map[string]string{"flex.aks.azure.com/azureflex-nodeclass-hash": "0123"},
		ImageId:     "microsoft-dsvm:ubuntu-hpc:2204:22.04.2026010100",
		Capacity:    map[string]string{"cpu": "96", "memory": "1900Gi", "nvidia.com/gpu": "8"},
		Allocatable: map[string]string{"cpu": "94940m"},
		CreatedAt:   timestamppb.New(time.Unix(1_790_000_000, 0)),
	}
}

// seen is what of an instance Karpenter has to see.
func seen(t *testing.T, claim *v1.NodeClaim) {
	t.Helper()
	switch {
	case claim.Name != "h200-x7k2p",
		claim.Labels[corev1.LabelInstanceTypeStable] != "Standard_ND96isr_H200_v5",
		claim.Annotations["flex.aks.azure.com/azureflex-nodeclass-hash"] != "0123",
		claim.Status.ProviderID != providerID,
		claim.Status.ImageID != "microsoft-dsvm:ubuntu-hpc:2204:22.04.2026010100",
		!equal(claim.Status.Capacity, map[corev1.ResourceName]string{"cpu": "96", "memory": "1900Gi", "nvidia.com/gpu": "8"}),
		!equal(claim.Status.Allocatable, map[corev1.ResourceName]string{"cpu": "94940m"}),
		claim.CreationTimestamp.Unix() != 1_790_000_000,
		claim.DeletionTimestamp != nil:
		t.Errorf("%#v", claim)
	}
}

func equal(resources corev1.ResourceList, expected map[corev1.ResourceName]string) bool {
	same := func(actual resource.Quantity, text string) bool { return actual.Cmp(resource.MustParse(text)) == 0 }
	return maps.EqualFunc(resources, expected, same)
}

func asked(t *testing.T, fake *bringup, expected proto.Message) {
	t.Helper()
	if actual := fake.onlyRequest(t); !proto.Equal(actual, expected) {
		t.Errorf("asked %v\ninstead of %v", actual, expected)
	}
}

func TestCreateTellsTheWholeClaimAndReturnsWhatWasResolved(t *testing.T) {
	fake := start(t, always(&providerpb.CreateResponse{Instance: instance()}))
	created, err := fake.provider(t, forever).Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	seen(t, created)
	asked(t, fake, &providerpb.CreateRequest{Claim: claimMessage()})
}

func TestDeleteTellsTheWholeClaim(t *testing.T) {
	fake := start(t, always(&providerpb.DeleteResponse{}))
	if err := fake.provider(t, forever).Delete(t.Context(), claim()); err != nil {
		t.Fatal(err)
	}
	asked(t, fake, &providerpb.DeleteRequest{Claim: claimMessage()})
}

func TestGetAsksByProviderID(t *testing.T) {
	fake := start(t, always(&providerpb.GetResponse{Instance: instance()}))
	got, err := fake.provider(t, forever).Get(t.Context(), providerID)
	if err != nil {
		t.Fatal(err)
	}
	seen(t, got)
	asked(t, fake, &providerpb.GetRequest{ProviderId: providerID})
}

func TestIsDriftedReturnsTheReason(t *testing.T) {
	for _, reason := range []string{"", "AzureFlexNodeClassChanged"} {
		fake := start(t, always(&providerpb.IsDriftedResponse{Reason: reason}))
		drifted, err := fake.provider(t, forever).IsDrifted(t.Context(), claim())
		if err != nil || string(drifted) != reason {
			t.Errorf("%q, %v", drifted, err)
		}
		asked(t, fake, &providerpb.IsDriftedRequest{Claim: claimMessage()})
	}
}

func TestAMachineWithoutAProviderIDIsAnErrorAndNoCrash(t *testing.T) {
	for _, incomplete := range []*providerpb.Instance{nil, {Claim: "h200-x7k2p"}} {
		provider := start(t, always(&providerpb.CreateResponse{Instance: incomplete})).provider(t, forever)
		if created, err := provider.Create(t.Context(), claim()); created != nil || kind(err) != "other" {
			t.Errorf("%v, %v", created, err)
		}
		provider = start(t, always(&providerpb.GetResponse{Instance: incomplete})).provider(t, forever)
		if got, err := provider.Get(t.Context(), providerID); got != nil || kind(err) != "other" {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestOneBadRecordDoesNotSpoilAList(t *testing.T) {
	leaving, garbled := instance(), instance()
	leaving.ProviderId, leaving.Deleting = providerID+"-leaving", true
	garbled.ProviderId, garbled.Capacity = providerID+"-garbled", map[string]string{"cpu": "many", "memory": "1Gi"}
	answer := &providerpb.ListResponse{Instances: []*providerpb.Instance{{Claim: "nameless"}, garbled, leaving, instance()}}
	claims, err := start(t, always(answer)).provider(t, forever).List(t.Context())
	if err != nil || len(claims) != 3 {
		t.Fatalf("%v, %v", claims, err)
	}
	// Left out, it would be deleted.
	if claims[0].Status.ProviderID != providerID+"-garbled" || !equal(claims[0].Status.Capacity, map[corev1.ResourceName]string{"memory": "1Gi"}) {
		t.Errorf("%v", claims[0])
	}
	if claims[1].DeletionTimestamp.IsZero() {
		t.Errorf("%v is leaving", claims[1])
	}
	seen(t, claims[2])
}

func offering(zone string, price float64, available bool) *providerpb.Offering {
	return &providerpb.Offering{
		Requirements: []*providerpb.Requirement{
			{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{zone}},
			{Key: v1.CapacityTypeLabelKey, Operator: "In", Values: []string{"on-demand"}},
		},
		Price:     price,
		Available: available,
	}
}

func h200() *providerpb.InstanceType {
	return &providerpb.InstanceType{
		Name: "Standard_ND96isr_H200_v5",
		Requirements: []*providerpb.Requirement{
			{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{"Standard_ND96isr_H200_v5"}},
			{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"eastus2-1", "eastus2-2"}},
			{Key: corev1.LabelWindowsBuild, Operator: "DoesNotExist"},
			{Key: "karpenter.azure.com/sku-gpu-count", Operator: "In", Values: []string{"8"}, MinValues: proto.Int32(1)},
			{Key: "example.com/below", Operator: "Lt", Values: []string{"3"}},
		},
		Offerings:         []*providerpb.Offering{offering("eastus2-1", 84.8, false), offering("eastus2-2", 84.8, true)},
		Capacity:          map[string]string{"cpu": "96", "memory": "1900Gi", "nvidia.com/gpu": "8"},
		KubeReserved:      map[string]string{"cpu": "1060m", "memory": "45834Mi"},
		SystemReserved:    map[string]string{"cpu": "100m"},
		EvictionThreshold: map[string]string{"memory": "750Mi"},
	}
}

func TestInstanceTypesAreWhatKarpenterSchedulesOn(t *testing.T) {
	fake := start(t, always(&providerpb.GetInstanceTypesResponse{InstanceTypes: []*providerpb.InstanceType{h200()}}))
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "h200"}}
	pool.Spec.Template.Spec.NodeClassRef = claim().Spec.NodeClassRef
	types, err := fake.provider(t, forever).GetInstanceTypes(t.Context(), pool)
	if err != nil || len(types) != 1 {
		t.Fatalf("%v, %v", types, err)
	}
	asked(t, fake, &providerpb.GetInstanceTypesRequest{NodePool: "h200", NodeClass: "h200-eastus2"})

	if !equal(types[0].Allocatable(), map[corev1.ResourceName]string{"cpu": "94840m", "memory": "1899016Mi", "nvidia.com/gpu": "8"}) {
		t.Errorf("%v", types[0].Allocatable())
	}
	in := func(zone string) scheduling.Requirements {
		return scheduling.NewRequirements(scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone))
	}
	all, available := types[0].Offerings, types[0].Offerings.Available()
	if len(all) != 2 || available.HasCompatible(in("eastus2-1")) || !available.HasCompatible(in("eastus2-2")) || available[0].Price != 84.8 {
		t.Errorf("%v", all)
	}
	more := func(count string) scheduling.Requirements {
		return scheduling.NewRequirements(scheduling.NewRequirement("karpenter.azure.com/sku-gpu-count", corev1.NodeSelectorOpGt, count))
	}
	if types[0].Requirements.Intersects(more("7")) != nil || types[0].Requirements.Intersects(more("8")) == nil {
		t.Error("Gt is not honoured")
	}
	if !types[0].Requirements.Get("example.com/below").Has("2") || types[0].Requirements.Get("example.com/below").Has("3") {
		t.Error("Lt is not honoured")
	}
	if least := types[0].Requirements.Get("karpenter.azure.com/sku-gpu-count").MinValues; least == nil || *least != 1 {
		t.Error("minValues is lost")
	}
}

func TestAnInstanceTypeThatCannotBeReadIsLeftOut(t *testing.T) {
	broken := map[string]func(*providerpb.InstanceType){
		"no operator":      func(it *providerpb.InstanceType) { it.Requirements[0].Operator = "Like" },
		"Gt of nothing":    func(it *providerpb.InstanceType) { it.Requirements[4].Values = nil },
		"Gt of a word":     func(it *providerpb.InstanceType) { it.Requirements[4].Values = []string{"few"} },
		"bad offering":     func(it *providerpb.InstanceType) { it.Offerings[0].Requirements[0].Operator = "" },
		"bad capacity":     func(it *providerpb.InstanceType) { it.Capacity["cpu"] = "" },
		"bad reservation":  func(it *providerpb.InstanceType) { it.KubeReserved["cpu"] = "1 core" },
		"bad system share": func(it *providerpb.InstanceType) { it.SystemReserved["cpu"] = "x" },
		"bad threshold":    func(it *providerpb.InstanceType) { it.EvictionThreshold["memory"] = "10%" },
	}
	answer := &providerpb.GetInstanceTypesResponse{}
	for _, breakIt := range broken {
		instanceType := h200()
		breakIt(instanceType)
		answer.InstanceTypes = append(answer.InstanceTypes, instanceType)
	}
	small := h200()
	small.Name = "Standard_D8s_v5"
	answer.InstanceTypes = append(answer.InstanceTypes, small)
	types, err := start(t, always(answer)).provider(t, forever).GetInstanceTypes(t.Context(), &v1.NodePool{})
	names := func(it *karpenter.InstanceType) bool { return it.Name == "Standard_D8s_v5" }
	if err != nil || len(types) != 1 || !slices.ContainsFunc(types, names) {
		t.Errorf("%v, %v", types, err)
	}
}

func TestACatalogueLargerThanAnOrdinaryMessageArrives(t *testing.T) {
	answer := &providerpb.GetInstanceTypesResponse{}
	for proto.Size(answer) < 6<<20 {
		large := h200()
		large.Requirements[0].Values = []string{strings.Repeat("x", 1<<20)}
		answer.InstanceTypes = append(answer.InstanceTypes, large)
	}
	types, err := start(t, always(answer)).provider(t, forever).GetInstanceTypes(t.Context(), &v1.NodePool{})
	if err != nil || len(types) != len(answer.InstanceTypes) {
		t.Errorf("%d, %v", len(types), err)
	}
}

func TestTheProviderIsNamedAndKnowsItsClassAndItsLabelsAndRepairsNothing(t *testing.T) {
	provider := start(t, always(nil)).provider(t, forever)
	if provider.Name() != "azure-flex" || provider.RepairPolicies() != nil {
		t.Errorf("%s, %v", provider.Name(), provider.RepairPolicies())
	}
	classes := provider.GetSupportedNodeClasses()
	if len(classes) != 1 {
		t.Fatalf("%v", classes)
	}
	for _, label := range []string{"karpenter.azure.com/sku-gpu-count", "kubernetes.azure.com/sku-cpu"} {
		if !v1.WellKnownLabels.Has(label) {
			t.Errorf("%s is not known", label)
		}
	}
}
