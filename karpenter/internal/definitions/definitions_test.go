package definitions_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bringup-dev/bringup/karpenter/internal/definitions"
)

// served is an API server that serves these kinds, by group and version.
type served struct {
	lock  sync.Mutex
	kinds map[string][]string
	err   error
}

func (s *served) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	kinds, found := s.kinds[groupVersion]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	list := &metav1.APIResourceList{}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return list, nil
}

func (s *served) define(groupVersion string, kinds ...string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.err = nil
	s.kinds[groupVersion] = kinds
}

func (s *served) fail(err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.err = err
}

func TestKarpenterWaitsForDefinitionsAndSaysSo(t *testing.T) {
	server := &served{kinds: map[string][]string{"karpenter.sh/v1": {"NodePool"}}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	done := make(chan error, 1)
	go func() {
		done <- definitions.Wait(t.Context(), server, func() (net.Listener, error) { return listener, nil }, time.Millisecond)
	}()
	until(t, address, "NodeClaim of karpenter.sh/v1", "AzureFlexNodeClass of flex.aks.azure.com/v1alpha1")
	if code, _ := get(t, address, "/healthz"); code != http.StatusOK {
		t.Fatalf("it is alive, and answers %d", code)
	}
	server.define("karpenter.sh/v1", "NodePool", "NodeClaim")
	until(t, address, "not defined: AzureFlexNodeClass of")
	server.fail(errors.New("connection refused"))
	until(t, address, "connection refused")
	select {
	case <-done:
		t.Fatal("it has not waited")
	default:
	}
	server.define("flex.aks.azure.com/v1alpha1", "AzureFlexNodeClass")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// Karpenter listens there next.
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestWhereEverythingIsDefinedNothingIsOpened(t *testing.T) {
	server := &served{kinds: map[string][]string{
		"karpenter.sh/v1":             {"NodePool", "NodeClaim"},
		"flex.aks.azure.com/v1alpha1": {"AzureFlexNodeClass"},
	}}
	listen := func() (net.Listener, error) { return nil, errors.New("nothing to listen for") }
	if err := definitions.Wait(t.Context(), server, listen, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// until asks /readyz until it is not ready for these reasons.
func until(t *testing.T, address string, reasons ...string) {
	t.Helper()
	for {
		code, text := get(t, address, "/readyz")
		if code != http.StatusServiceUnavailable {
			t.Fatalf("readyz answers %d: %s", code, text)
		}
		all := true
		for _, reason := range reasons {
			all = all && strings.Contains(text, reason)
		}
		if all {
			return
		}
	}
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
