// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestReadyzSaysWhatAndWhyNot(t *testing.T) {
	var notReady error
	h := Handler(func() (string, error) { return "ok: standing by", notReady }, prometheus.NewRegistry())
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w
	}
	if w := get(); w.Code != http.StatusOK || w.Body.String() != "ok: standing by\n" {
		t.Errorf("ready: got %d %q", w.Code, w.Body)
	}
	notReady = errors.New("waits for the caches")
	if w := get(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "waits for the caches") {
		t.Errorf("not ready: got %d %q", w.Code, w.Body)
	}
}

func TestServesTheGivenMetricsUntilTheContextEnds(t *testing.T) {
	reg := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_operator_test_total", Help: "."})
	reg.MustRegister(counter)
	counter.Add(3)

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, l, Handler(func() (string, error) { return "ok", nil }, reg)) }()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), "etcd_operator_test_total 3") {
		t.Errorf("metric not served: %s", body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
