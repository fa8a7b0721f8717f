package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/bringup-dev/bringup/karpenter/internal/cloudprovider"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

const (
	deletedClaims = 200
	// The limit of a wait, which only a broken Karpenter reaches: Karpenter forgets a deleted claim after
	// 15 s.
	patience = 90 * time.Second
)

// oneSize is a bringup that offers one size, which fits one of the test's pods.
type oneSize struct{ providerpb.ProviderClient }

func (oneSize) GetInstanceTypes(context.Context, *providerpb.GetInstanceTypesRequest, ...grpc.CallOption) (*providerpb.GetInstanceTypesResponse, error) {
	in := func(key, value string) *providerpb.Requirement {
		return &providerpb.Requirement{Key: key, Operator: "In", Values: []string{value}}
	}
	where := []*providerpb.Requirement{in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(corev1.LabelTopologyZone, "zone-1")}
	return &providerpb.GetInstanceTypesResponse{InstanceTypes: []*providerpb.InstanceType{{
		Name: "Standard_D8s_v5",
		Requirements: append(where,
			in(corev1.LabelInstanceTypeStable, "Standard_D8s_v5"), in(corev1.LabelArchStable, "amd64"), in(corev1.LabelOSStable, "linux")),
		Offerings: []*providerpb.Offering{{Requirements: where, Price: 1, Available: true}},
		Capacity:  map[string]string{"cpu": "8", "memory": "32Gi", "pods": "110"},
	}}}, nil
}

// core is Karpenter's controllers around our provider, without an API server: objects are in a fake
// client, and the test sends the events of NodeClaims.
type core struct {
	client      client.WithWatch
	claims      *controllertest.FakeInformer
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	// afterCreate runs when a NodeClaim is stored, and before its creator gets the answer.
	afterCreate func(*v1.NodeClaim)
}

func startCore(ctx context.Context, t *testing.T) *core {
	t.Helper()
	c := &core{}
	c.client = fake.NewClientBuilder().
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(o client.Object) []string { return []string{o.(*v1.NodeClaim).Status.ProviderID} }).
		WithInterceptorFuncs(interceptor.Funcs{Create: c.create}).
		Build()
	informers := &informertest.FakeInformers{}
	var err error
	if c.claims, err = informers.FakeInformerFor(ctx, &v1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	karpenter, err := ctrl.NewManager(&rest.Config{}, manager.Options{
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		MapperProvider:         func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return c.client.RESTMapper(), nil },
		NewCache:               func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
		NewClient:              func(*rest.Config, client.Options) (client.Client, error) { return c.client, nil },
		BaseContext:            func() context.Context { return ctx },
	})
	if err != nil {
		t.Fatal(err)
	}
	provider := cloudprovider.New(oneSize{})
	c.cluster = state.NewCluster(clock.RealClock{}, c.client, provider)
	recorder := events.NewRecorder(&record.FakeRecorder{})
	for _, controller := range controllers.NewControllers(ctx, karpenter, clock.RealClock{}, c.client, recorder, provider, provider, c.cluster, nil) {
		if provisioner, ok := controller.(*provisioning.Provisioner); ok {
			c.provisioner = provisioner
		}
		// All controllers that keep NodeClaims in the state of the cluster; the test does the work of the
		// other controllers.
		if named, ok := controller.(interface{ Name() string }); ok && strings.HasPrefix(named.Name(), "state.nodeclaim") {
			if err := controller.Register(ctx, karpenter); err != nil {
				t.Fatal(err)
			}
		}
	}
	go func() {
		if err := karpenter.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	<-karpenter.Elected()
	return c
}

func (c *core) create(ctx context.Context, client client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if err := client.Create(ctx, object, options...); err != nil {
		return err
	}
	if claim, ok := object.(*v1.NodeClaim); ok {
		c.claims.Add(claim.DeepCopy())
		c.afterCreate(claim.DeepCopy())
	}
	return nil
}

// pod creates a pod that is pending and fills a node.
func (c *core) pod(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "main",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
	if err := c.client.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	c.provisioner.Trigger(pod.UID)
}

func (c *core) nodePool(ctx context.Context, t *testing.T) {
	t.Helper()
	pool := &v1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Spec: v1.NodePoolSpec{Template: v1.NodeClaimTemplate{Spec: v1.NodeClaimTemplateSpec{
			NodeClassRef: &v1.NodeClassReference{Group: "flex.aks.azure.com", Kind: "AzureFlexNodeClass", Name: "class"},
		}}},
	}
	for _, condition := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady} {
		pool.StatusConditions().SetTrue(condition)
	}
	if err := c.client.Create(ctx, pool); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited %s in vain for %s", patience, what)
			return
		}
	}
}

// Azure refuses a VM within a second, and Karpenter deletes the claim. Karpenter's state of the cluster
// can process this deletion before the provisioner, which created the claim, adds the claim to it. In
// Karpenter 1.14.1 the claim then stays there, and no other pod gets a node (Karpenter issue 3176).
func TestClaimsThatAreDeletedWithinASecondDoNotKeepTheNextPodFromItsNode(t *testing.T) {
	ctx, stop := context.WithCancel(withOptions(t))
	defer stop()
	log.SetLogger(logr.Discard())
	c := startCore(ctx, t)
	c.nodePool(ctx, t)
	until(t, "the state of an empty cluster", func() bool { return c.cluster.Synced(ctx) })

	deleted := make(chan string, deletedClaims)
	c.afterCreate = func(claim *v1.NodeClaim) {
		until(t, "the claim in the state", func() bool { return c.cluster.NodeClaimExists(claim.Name) })
		if err := c.client.Delete(ctx, claim); err != nil {
			t.Error(err)
		}
		c.claims.Delete(claim)
		until(t, "the deletion in the state", func() bool { return !c.cluster.NodeClaimExists(claim.Name) })
		deleted <- claim.Name
	}
	for number := range deletedClaims {
		c.pod(ctx, t, fmt.Sprintf("refused-%d", number))
	}
	if _, err := c.provisioner.Reconcile(ctx); err != nil {
		t.Fatal(err)
	}
	if len(deleted) != deletedClaims {
		t.Fatalf("%d claims were created and deleted, not %d", len(deleted), deletedClaims)
	}
	if c.cluster.Synced(ctx) {
		t.Fatal("no claim was deleted before its creator added it to the state: this test shows nothing")
	}
	if err := c.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}

	var claim *v1.NodeClaim
	c.afterCreate = func(created *v1.NodeClaim) { claim = created }
	c.pod(ctx, t, "next")
	until(t, "a claim for the next pod", func() bool {
		c.provisioner.Trigger("next")
		if _, err := c.provisioner.Reconcile(ctx); err != nil {
			t.Fatal(err)
		}
		return claim != nil
	})
}

// withOptions reads Karpenter's options, which are those of the process: without the flags of the test.
func withOptions(t *testing.T) context.Context {
	t.Helper()
	arguments := os.Args
	os.Args = arguments[:1]
	defer func() { os.Args = arguments }()
	t.Setenv("BATCH_IDLE_DURATION", "100ms")
	t.Setenv("BATCH_MAX_DURATION", "1s")
	return injection.WithOptionsOrDie(t.Context(), options.Injectables...)
}
