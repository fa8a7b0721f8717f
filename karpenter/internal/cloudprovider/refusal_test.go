package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/bringup-dev/bringup/karpenter/internal/cloudprovider"
	"github.com/bringup-dev/bringup/karpenter/internal/connection"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// The end of a wait that only a broken test reaches.
const forever = time.Minute

// every method that crosses the wire.
var every = map[string]func(context.Context, *cloudprovider.CloudProvider) error{
	"Create": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		_, err := provider.Create(ctx, &v1.NodeClaim{})
		return err
	},
	"Delete": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		return provider.Delete(ctx, &v1.NodeClaim{})
	},
	"Get": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		_, err := provider.Get(ctx, "azure-flex:///x")
		return err
	},
	"List": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		_, err := provider.List(ctx)
		return err
	},
	"GetInstanceTypes": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		_, err := provider.GetInstanceTypes(ctx, &v1.NodePool{})
		return err
	},
	"IsDrifted": func(ctx context.Context, provider *cloudprovider.CloudProvider) error {
		_, err := provider.IsDrifted(ctx, &v1.NodeClaim{})
		return err
	},
}

// kind names the type by which Karpenter knows an error.
func kind(err error) string {
	var create *karpenter.CreateError
	switch {
	case karpenter.IsInsufficientCapacityError(err):
		return "InsufficientCapacity"
	case karpenter.IsNodeClassNotReadyError(err):
		return "NodeClassNotReady"
	case karpenter.IsNodeClaimNotFoundError(err):
		return "NodeClaimNotFound"
	case errors.As(err, &create):
		return "Create " + create.ConditionReason + ": " + create.ConditionMessage
	default:
		return "other"
	}
}

func TestEveryClassOfTroubleBecomesTheErrorThatKarpenterActsOn(t *testing.T) {
	typed := map[providerpb.Trouble_Class]string{
		providerpb.Trouble_CAPACITY:        "InsufficientCapacity",
		providerpb.Trouble_CLASS_NOT_READY: "NodeClassNotReady",
		providerpb.Trouble_NOT_FOUND:       "NodeClaimNotFound",
	}
	for number := range providerpb.Trouble_Class_name {
		class := providerpb.Trouble_Class(number)
		trouble := &providerpb.Trouble{Class: class, Cause: "SomeCause", ArmCode: "SomeCode", Message: "what happened"}
		// A code of its own must not matter.
		provider := start(t, refuses(codes.Aborted, "", trouble)).provider(t, forever)
		for name, call := range every {
			expected, isTyped := typed[class]
			if !isTyped {
				expected = "other"
				if name == "Create" {
					expected = "Create SomeCause: what happened"
				}
			}
			err := call(t.Context(), provider)
			if kind(err) != expected {
				t.Errorf("%s, %s: %s instead of %s (%v)", name, class, kind(err), expected, err)
			}
			if !strings.Contains(fmt.Sprint(err), "SomeCause (SomeCode): what happened") {
				t.Errorf("%s, %s: %v", name, class, err)
			}
		}
	}
}

func TestATextIsNeverSearched(t *testing.T) {
	text := "InsufficientCapacity QuotaExceeded AllocationFailed NodeClaimNotFound not found not ready"
	for _, code := range []codes.Code{codes.NotFound, codes.ResourceExhausted, codes.FailedPrecondition, codes.Unknown} {
		provider := start(t, refuses(code, text, nil)).provider(t, forever)
		for name, call := range every {
			err := call(t.Context(), provider)
			if kind(err) != "other" || status.Code(unwrapped(err)) != code || !strings.Contains(err.Error(), text) {
				t.Errorf("%s, %s: %s (%v)", name, code, kind(err), err)
			}
		}
	}
}

func TestALongMessageIsCutBetweenLettersAndACauseThatIsMissingIsNotAReason(t *testing.T) {
	trouble := &providerpb.Trouble{Class: providerpb.Trouble_REQUEST, Cause: "InvalidRequest", Message: strings.Repeat("ü", 400)}
	provider := start(t, refuses(codes.InvalidArgument, "", trouble)).provider(t, forever)
	_, err := provider.Create(t.Context(), &v1.NodeClaim{})
	if expected := "Create InvalidRequest: " + strings.Repeat("ü", 297) + "..."; kind(err) != expected {
		t.Errorf("%s", kind(err))
	}
	// The API server refuses a condition without a reason: Karpenter's own has to do.
	trouble = &providerpb.Trouble{Class: providerpb.Trouble_TRANSIENT, Message: "no cause"}
	provider = start(t, refuses(codes.Unavailable, "", trouble)).provider(t, forever)
	if _, err := provider.Create(t.Context(), &v1.NodeClaim{}); kind(err) != "other" {
		t.Errorf("%s", kind(err))
	}
}

func TestACallEndsAtItsLimitAndBringupIsToldSo(t *testing.T) {
	const limit = 200 * time.Millisecond
	ended := make(chan struct{}, len(every))
	fake := start(t, func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	})
	provider := fake.provider(t, limit)
	for name, call := range every {
		err := call(t.Context(), provider)
		if kind(err) != "other" || status.Code(unwrapped(err)) != codes.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
		receive(t, ended)
	}
}

func TestNoCallMayTakeLongerThanTenSeconds(t *testing.T) {
	left := make(chan time.Duration, 1)
	fake := start(t, func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		deadline, _ := ctx.Deadline()
		left <- time.Until(deadline)
		return &providerpb.DeleteResponse{}, nil
	})
	if err := fake.provider(t, connection.Limit).Delete(context.Background(), &v1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	if left := receive(t, left); left > 10*time.Second || left < 0 {
		t.Errorf("%s are left", left)
	}
}

func TestACancelledCallIsCancelledAtBringupToo(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan struct{})
	fake := start(t, func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := fake.provider(t, forever).Create(ctx, &v1.NodeClaim{})
	if kind(err) != "other" || status.Code(unwrapped(err)) != codes.Canceled {
		t.Errorf("%v", err)
	}
	receive(t, ended)
}

func TestABringupThatIsGoneIsNoVerdictAndOneThatComesBackIsFound(t *testing.T) {
	fake := start(t, always(&providerpb.DeleteResponse{}))
	provider := fake.provider(t, connection.Limit)
	if err := provider.Delete(t.Context(), &v1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	fake.server.Stop()
	for name, call := range every {
		err := call(t.Context(), provider)
		if kind(err) != "other" || status.Code(unwrapped(err)) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	fake.serve(t)
	for deadline := time.Now().Add(forever); ; {
		err := provider.Delete(t.Context(), &v1.NodeClaim{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func receive[Value any](t *testing.T, from <-chan Value) Value {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(forever):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// unwrapped is the innermost error.
func unwrapped(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}
