// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// server answers requests as a test wants it. Nothing goes over a network, so that
// the time between two attempts is that of a testing/synctest bubble.
type server struct {
	answer   func(r *http.Request, body string) (status int, text string)
	requests []string // method, path and query of all
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	status, text := s.answer(r, body)
	header := http.Header{}
	switch {
	case r.URL.Query().Get("uploadType") == "resumable":
		header.Set("Location", "https://store.example.com/session?upload_id=secret")
	case status == http.StatusPermanentRedirect: // of a chunk, as Google's clients ask for it
		header.Set("X-Http-Status-Code-Override", "308")
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// count returns how many requests begin so.
func (s *server) count(beginning string) int {
	n := 0
	for _, request := range s.requests {
		if strings.HasPrefix(request, beginning) {
			n++
		}
	}
	return n
}

// openAt opens the bucket b of a server.
func openAt(t *testing.T, requests http.RoundTripper) *Store {
	t.Helper()
	s := &Store{bucket: "b", endpoint: "https://store.example.com/storage/v1/", network: store.Transport(), requests: requests}
	service, err := s.serviceOver(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	s.service = service
	return s
}
