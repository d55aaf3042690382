//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// sessions keeps an account of upload sessions from what is sent and answered.
// fake-gcs-server can't show them: it keeps them in memory, has no request that lists
// them, and keeps one also after its DELETE, which it answers as Google does.
type sessions struct {
	mu    sync.Mutex
	begun map[string]bool // by address: those that are neither finished nor given up
}

func (s *sessions) over(base http.RoundTripper) http.RoundTripper { return accounted{s, base} }

// open are those that are neither finished nor given up.
func (s *sessions) open() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.begun))
}

func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.begun)
}

// sessionEnded is Google's status for a session that it has ended.
const sessionEnded = 499

type accounted struct {
	*sessions
	base http.RoundTripper
}

func (a accounted) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := a.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	address := r.URL.String()
	switch location := answer.Header.Get("Location"); {
	case location != "" && answer.StatusCode == http.StatusOK && !r.URL.Query().Has("upload_id"):
		if a.begun == nil {
			a.begun = map[string]bool{}
		}
		a.begun[location] = true
	case r.Method == http.MethodDelete:
		if answer.StatusCode == sessionEnded {
			delete(a.begun, address)
		}
	case answer.StatusCode == http.StatusOK && answer.Header.Get("X-Http-Status-Code-Override") == "":
		delete(a.begun, address) // the last chunk
	}
	return answer, nil
}
