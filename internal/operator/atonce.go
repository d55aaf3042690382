// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io"
	"net/http"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

// requestsAtOnce is how many requests of all clients the API server has at most at the same time.
// The API server accepts 100 on one connection. For each request beyond, the transport would open
// another connection: hundreds while a thousand clusters change and the API server is slow. The
// rest is for watches and the Lease.
const requestsAtOnce = 64

// atOnce delays requests while the API server has as many as it may. Watches do not count: they
// last.
type atOnce struct {
	slots *fair.Slots
	next  http.RoundTripper
}

// RoundTrip holds a slot until the caller has closed the body of the answer.
func (a atOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	if watches(req) {
		return a.next.RoundTrip(req)
	}
	if err := a.slots.Take(req.Context()); err != nil {
		return nil, err
	}
	free := sync.OnceFunc(a.slots.Free)
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		free()
		return nil, err
	}
	resp.Body = freeing{resp.Body, free}
	return resp, nil
}

func watches(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// freeing frees a slot when it is closed.
type freeing struct {
	io.ReadCloser
	free func()
}

func (f freeing) Close() error {
	defer f.free()
	return f.ReadCloser.Close()
}
