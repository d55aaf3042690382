// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

const (
	// slowLease is how long a request for the Lease takes if the API server has too much to do: half
	// of its time-out. An instance that cannot renew its Lease for leader.RenewDeadline has to end.
	slowLease = leader.RenewDeadline / 4
	// quickLease is how long it takes at most if the API server can do more.
	quickLease = 250 * time.Millisecond
	// fewRequests at once keep an API server busy that answers in milliseconds, and fewestRequests
	// are left if it is slow all the same.
	fewRequests, fewestRequests = 8, 2
)

// pace adapts how many requests the API server has at the same time. A slow API server answers no
// sooner if it has more of them, and the request for the Lease waits behind them. So that request
// measures the API server. Its time does not depend on a webhook that delays the pods of one
// namespace.
type pace struct{ slots *fair.Slots }

func newPace() pace { return pace{fair.NewSlots(fewRequests)} }

// slower is for a request for the Lease that lasts, or that an API server with too much to do refuses.
func (p pace) slower() {
	p.slots.Resize(func(n int, _ bool) int { return max(n/4, fewestRequests) })
}

// answered is for a request for the Lease that had its answer. More slots are only for those who
// wait: nothing has shown that the API server can answer as many requests at once.
func (p pace) answered(after time.Duration) {
	p.slots.Resize(func(n int, scarce bool) int {
		switch {
		case after > slowLease/2:
			return n
		case after > quickLease:
			return max(n, min(2*n, fewRequests))
		case scarce:
			return min(2*n, requestsAtOnce)
		default:
			return max(n/2, fewRequests)
		}
	})
}

// measured adapts a pace to the time that requests take.
type measured struct {
	pace pace
	next http.RoundTripper
}

func (m measured) RoundTrip(req *http.Request) (*http.Response, error) {
	begun, slow := time.Now(), time.AfterFunc(slowLease, m.pace.slower)
	resp, err := m.next.RoundTrip(req)
	slow.Stop()
	if err != nil {
		return resp, err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		m.pace.slower() // it refuses in milliseconds what it has no time for
	case code < http.StatusInternalServerError:
		m.pace.answered(time.Since(begun))
	}
	return resp, nil
}
