// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestConnectionsTellWhatTheyMove(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer server.Close()
	transport := Transport()
	defer transport.CloseIdleConnections()
	var moved atomic.Int64
	ctx := WithProgress(t.Context(), func(n int) { moved.Add(int64(n)) })
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, strings.NewReader(strings.Repeat("x", 50_000)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if n := moved.Load(); n < 51_000 || n > 55_000 {
		t.Errorf("51000 bytes and the headers were moved, and %d were reported", n)
	}
}
