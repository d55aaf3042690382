// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"net/http"
	"sync"
)

// Exclusive ensures that nothing reads a request's body after its round trip. An
// http.Transport may continue to send a body after an error or an early answer. By then, the
// next attempt or the next part reuses its buffer.
type Exclusive struct{ http.RoundTripper }

// RoundTrip sends a request.
func (e Exclusive) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return e.RoundTripper.RoundTrip(request)
	}
	body := &lentBody{ReadCloser: request.Body}
	defer body.takeBack()
	lent := request.Clone(request.Context())
	lent.Body = body
	return e.RoundTripper.RoundTrip(lent)
}

// lentBody is readable until it is taken back.
type lentBody struct {
	io.ReadCloser
	mu    sync.Mutex
	taken bool
}

func (b *lentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.ReadCloser.Read(p)
}

func (b *lentBody) takeBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = true
}
