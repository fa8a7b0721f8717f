package definitions

import (
	"net/http"
	"sync"
)

// probes answers /healthz and /readyz in place of Karpenter, which has not started yet.
type probes struct {
	lock    sync.Mutex
	missing error
}

func newProbes(missing error) *probes { return &probes{missing: missing} }

func (p *probes) set(missing error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.missing = missing
}

func (p *probes) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/healthz" {
		_, _ = answer.Write([]byte("ok\n"))
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	http.Error(answer, "waiting for definitions: "+p.missing.Error(), http.StatusServiceUnavailable)
}
