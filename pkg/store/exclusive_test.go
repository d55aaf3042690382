// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An http.Transport may read on after it has returned.
func TestABodyIsNotReadAfterItsRoundTrip(t *testing.T) {
	var kept io.Reader
	transport := Exclusive{roundTrip(func(r *http.Request) (*http.Response, error) {
		kept = r.Body
		return nil, errors.New("cut off")
	})}
	content := strings.NewReader("content")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://host/", content)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := transport.RoundTrip(request); err == nil { //nolint:bodyclose // there is none
		t.Fatalf("got %v", response.Status)
	}
	if n, err := kept.Read(make([]byte, 1)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if content.Len() != len("content") {
		t.Errorf("%d bytes are left", content.Len())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
