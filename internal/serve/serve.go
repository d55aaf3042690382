// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve is the operators' HTTP server: /readyz for the kubelet and /metrics for
// Prometheus.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// shutdownGrace is how long open requests may take when the server ends.
const shutdownGrace = 3 * time.Second

// Handler serves /readyz and /metrics. /readyz answers 200 with ready's text, or 503 with
// ready's error.
func Handler(ready func() (string, error), metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		says, err := ready()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, says)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// Run serves until ctx ends, then waits for open requests. It closes the listener.
func Run(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	if err != nil {
		return fmt.Errorf("end the HTTP server on %s: %w", l.Addr(), err)
	}
	return nil
}
