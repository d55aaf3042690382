// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/leader"
)

// busyServer answers one request after the other, in their order.
type busyServer struct {
	each time.Duration

	mu   sync.Mutex
	free time.Time // from when on it has nothing to do
}

func (s *busyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(s.each)
	done := s.free
	s.mu.Unlock()
	return answerAfter(req, time.Until(done))
}

// patientServer answers all requests but those for the Lease after the same time.
type patientServer struct{ each time.Duration }

func (s patientServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("for") == "the Lease" {
		return answerAfter(req, time.Millisecond)
	}
	return answerAfter(req, s.each)
}

func answerAfter(req *http.Request, d time.Duration) (*http.Response, error) {
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case <-time.After(d):
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
}

// ask sends requests that begin together, and returns when all have their answers. Meanwhile it
// renews a Lease as client-go does. It returns the longest time without a renewal.
func ask(t *testing.T, server http.RoundTripper, requests int) (took, unrenewed time.Duration) {
	t.Helper()
	p := newPace()
	leases, others := measured{p, server}, atOnce{p.slots, server}
	ctx, end := context.WithCancel(t.Context())
	var renewing, asking sync.WaitGroup
	renewed := time.Now()
	renewing.Go(func() {
		for ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(ctx, leader.RenewDeadline/2)
			req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://server/lease", http.NoBody)
			if err != nil {
				t.Error(err)
			}
			req.Header.Set("for", "the Lease")
			resp, err := leases.RoundTrip(req)
			cancel()
			if err == nil {
				resp.Body.Close()
				unrenewed = max(unrenewed, time.Since(renewed))
				renewed = time.Now()
			}
			time.Sleep(leader.RetryPeriod)
		}
	})
	time.Sleep(time.Hour) // everything is quick
	begun := time.Now()
	for range requests {
		asking.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server/pods", http.NoBody)
			if err != nil {
				t.Error(err)
			}
			resp, err := others.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	asking.Wait()
	took = time.Since(begun)
	end()
	renewing.Wait()
	return took, max(unrenewed, time.Since(renewed))
}

// The requests of an operator that changes a thousand clusters kept an API server that answered
// nine in a second busy for seven seconds, and the renewal of its Lease waited behind them.
func TestTheLeaseIsRenewedAtABusyAPIServer(t *testing.T) {
	for _, each := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 110 * time.Millisecond, 220 * time.Millisecond} {
		t.Run(each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const requests = 1000
				took, unrenewed := ask(t, &busyServer{each: each}, requests)
				if most := leader.RenewDeadline / 2; unrenewed > most {
					t.Errorf("the Lease was not renewed for %s", unrenewed)
				}
				// The API server always has something to do, the Lease included.
				if least := requests*each + took/leader.RetryPeriod*each; took > least+least/10+time.Second {
					t.Errorf("all were answered after %s, and could be after %s", took, least)
				}
			})
		})
	}
}

// A webhook takes five seconds for each request, and the API server is idle.
func TestManyRequestsWaitForASlowWebhookAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, _ := ask(t, patientServer{5 * time.Second}, 1000)
		if most := 100 * time.Second; took > most {
			t.Errorf("all were answered after %s, want %s", took, most)
		}
	})
}

// shedding is an API server that refuses every request for the Lease at once.
type shedding struct{ status int }

func (s shedding) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Body: http.NoBody}, nil
}

// An API server that has too much to do refuses requests within milliseconds. That is no sign that
// it could do more.
func TestARefusalIsNoQuickAnswer(t *testing.T) {
	for status, want := range map[int]int{
		http.StatusTooManyRequests:     fewestRequests,
		http.StatusServiceUnavailable:  fewestRequests,
		http.StatusInternalServerError: fewRequests,
		http.StatusGatewayTimeout:      fewRequests,
		http.StatusConflict:            requestsAtOnce,
		http.StatusOK:                  requestsAtOnce,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPace()
				ctx, leave := context.WithCancel(t.Context())
				for range 2 * requestsAtOnce {
					go func() { _ = p.slots.Take(ctx) }()
				}
				synctest.Wait()
				for range 10 {
					req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://server/lease", http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := measured{p, shedding{status}}.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				if p.atOnce() != want {
					t.Errorf("%d requests at once, want %d", p.atOnce(), want)
				}
				leave()
				synctest.Wait()
			})
		})
	}
}

// atOnce is how many requests the API server may have at the same time.
func (p pace) atOnce() int { return p.slots.Resize(func(n int, _ bool) int { return n }) }

// An API server that hangs gets few requests when it is back, and more as soon as it is quick.
func TestThePaceRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for range 5 {
			p.slower()
		}
		if p.atOnce() != fewestRequests {
			t.Errorf("%d requests at once", p.atOnce())
		}
		for range 5 {
			p.answered(slowLease / 3)
		}
		if p.atOnce() != fewRequests {
			t.Errorf("%d requests at once at an API server that is neither quick nor slow", p.atOnce())
		}
		ctx, leave := context.WithCancel(t.Context())
		for range 2 * requestsAtOnce {
			go func() { _ = p.slots.Take(ctx) }()
		}
		synctest.Wait()
		for range 10 {
			p.answered(quickLease)
		}
		if p.atOnce() != requestsAtOnce {
			t.Errorf("%d requests at once although some wait", p.atOnce())
		}
		leave()
		synctest.Wait()
		for range 10 {
			p.answered(quickLease)
		}
		if p.atOnce() != fewRequests {
			t.Errorf("%d requests at once when nobody waits any more", p.atOnce())
		}
	})
}
