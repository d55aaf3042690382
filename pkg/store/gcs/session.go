// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"net/http"
	"sync"
)

// session learns the address of an upload session from the answers to one upload's requests,
// because the SDK does not expose it. The address gives write access to the session, so
// nothing may reveal it.
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

// end cancels the session, even if ctx has ended. Its result does not matter: nothing of a
// session is visible, and Google ends it within a week.
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
