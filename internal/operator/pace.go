// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

const (
	// slowLease is how long a request for the Lease takes if the API server has too much to do. An
	// instance that cannot renew its Lease for leader.RenewDeadline has to end.
	slowLease = time.Second
	// fewRequests at once keep an API server busy that answers in milliseconds, and fewestRequests
	// are left if it is slow all the same.
	fewRequests, fewestRequests = 8, 2
)

// pace adapts how many requests the API server has at the same time. A slow API server answers no
// sooner if it has more of them, and the request for the Lease waits behind them. So that request
// measures the API server. Its time does not depend on a webhook that delays the pods of one
// namespace.
type pace struct {
	slots *fair.Slots

	mu  sync.Mutex
	now int // slots
}

func newPace() *pace { return &pace{slots: fair.NewSlots(fewRequests), now: fewRequests} }

// slower is for a request for the Lease that lasts.
func (p *pace) slower() { p.change(func(n int) int { return max(n/4, fewestRequests) }) }

// good is for a request for the Lease that had a quick answer. More slots are only for those who
// wait: nothing has shown that the API server can answer as many requests at once.
func (p *pace) good() {
	if p.slots.Scarce() {
		p.change(func(n int) int { return min(2*n, requestsAtOnce) })
	} else {
		p.change(func(n int) int { return max(n/2, fewRequests) })
	}
}

func (p *pace) change(how func(int) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = how(p.now)
	p.slots.Resize(p.now)
}

// measured adapts a pace to the time that requests take.
type measured struct {
	pace *pace
	next http.RoundTripper
}

func (m measured) RoundTrip(req *http.Request) (*http.Response, error) {
	slow := time.AfterFunc(slowLease, m.pace.slower)
	resp, err := m.next.RoundTrip(req)
	if slow.Stop() && err == nil {
		m.pace.good()
	}
	return resp, err
}
