// Package definitions waits until the API server serves the kinds that Karpenter watches.
//
// Karpenter's controllers give up two minutes after a watch cannot begin, and the process panics. The
// definitions come with other charts, which may be installed later.
package definitions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bringup-dev/bringup/karpenter/internal/nodeclass"
)

// Needed are the kinds without which nothing can be watched.
var Needed = []schema.GroupVersionKind{
	{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
	{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"},
	nodeclass.GroupVersion.WithKind("AzureFlexNodeClass"),
}

// Resources is the part of a discovery client that is needed.
type Resources interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Wait returns when everything needed is served. Until then it logs what is missing, and answers health
// probes on the listener: alive, and not ready because of it. The listener is closed when it returns.
func Wait(ctx context.Context, resources Resources, listen func() (net.Listener, error), pause time.Duration) error {
	missing := Missing(resources)
	if missing == nil {
		return nil
	}
	listener, err := listen()
	if err != nil {
		return fmt.Errorf("listening for health probes, %w", err)
	}
	probes := newProbes(missing)
	server := &http.Server{Handler: probes, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	said := ""
	for missing != nil {
		probes.set(missing)
		if missing.Error() != said {
			said = missing.Error()
			log.FromContext(ctx).Info("waiting for definitions", "missing", said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		missing = Missing(resources)
	}
	log.FromContext(ctx).Info("all definitions are served")
	return nil
}

// Missing says which of the needed kinds are not served, or nil.
func Missing(resources Resources) error {
	var missing []string
	for _, kind := range Needed {
		list, err := resources.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("asking the API server for %s, %w", kind.GroupVersion(), err)
		}
		served := err == nil && slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool {
			return resource.Kind == kind.Kind
		})
		if !served {
			missing = append(missing, fmt.Sprintf("%s of %s", kind.Kind, kind.GroupVersion()))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errors.New("not defined: " + strings.Join(missing, ", "))
}
