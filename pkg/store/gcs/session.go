// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"net/http"
	"sync"
)

// session finds out the address of an upload session, which the SDK keeps to itself,
// from the answers to one upload's requests. Whoever knows the address can write to
// the session, so it must not be told.
type session struct {
	base http.RoundTripper

	mu      sync.Mutex
	address string
}

func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if location := answer.Header.Get("Location"); location != "" && answer.StatusCode == http.StatusOK {
		s.mu.Lock()
		s.address = location
		s.mu.Unlock()
	}
	return answer, nil
}

// end gives up the session, also where ctx has ended. What it says does not matter:
// nothing of a session is visible, and a session that goes on ends within a week.
func (s *session) end(ctx context.Context) {
	s.mu.Lock()
	address := s.address
	s.mu.Unlock()
	if address == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, address, nil)
	if err != nil {
		return
	}
	answer, err := s.base.RoundTrip(request)
	if err != nil {
		return
	}
	_ = answer.Body.Close()
}
