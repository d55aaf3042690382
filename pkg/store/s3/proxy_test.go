//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/s3"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// proxy stands between a store and MinIO, and does to requests and answers what
// networks and bad servers do.
type proxy struct {
	request func(*http.Request)
	answer  func(*http.Response) error // an error: the connection is cut instead
}

func (p proxy) handler(t *testing.T, server *stores.MinIOServer) http.Handler {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
			if p.request != nil {
				p.request(r.Out)
			}
		},
		ModifyResponse: p.answer,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

func (p proxy) open(t *testing.T, server *stores.MinIOServer) *s3.Store {
	t.Helper()
	front := httptest.NewServer(p.handler(t, server))
	t.Cleanup(front.Close)
	through := config(server)
	through.Endpoint = front.URL
	return open(t, through)
}

func (p proxy) openTLS(t *testing.T, server *stores.MinIOServer) *s3.Store {
	t.Helper()
	front := httptest.NewTLSServer(p.handler(t, server))
	t.Cleanup(front.Close)
	through := config(server)
	through.Endpoint = front.URL
	through.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return open(t, through)
}

func open(t *testing.T, config s3.Config) *s3.Store {
	t.Helper()
	opened, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

const (
	small = 1000
	large = 20 << 20
)

func upload(size int64) store.Upload {
	return store.Upload{Body: bytes.NewReader(bytes.Repeat([]byte("x"), int(size))), Size: size}
}

// isLast reports whether an answer is to the request that makes an object visible.
func isLast(answer *http.Response, size int64) bool {
	if size == small {
		return answer.Request.Method == http.MethodPut
	}
	return answer.Request.Method == http.MethodPost && answer.Request.URL.Query().Has("uploadId")
}

var errCut = errors.New("cut")

func TestAnUploadWhoseAnswerIsLostHasSucceeded(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	for name, size := range map[string]int64{"one request": small, "parts": large} {
		for often, cut := range map[string]int32{"once": 1, "always": 1000} {
			t.Run(name+", "+often, func(t *testing.T) {
				var cuts atomic.Int32
				through := proxy{answer: func(answer *http.Response) error {
					if isLast(answer, size) && cuts.Add(1) <= cut {
						return errCut
					}
					return nil
				}}.open(t, server)
				key := "lost " + name + often
				object, err := through.Put(t.Context(), key, upload(size))
				if err != nil || object.Size != size || cuts.Load() == 0 {
					t.Errorf("put: %+v, error %v, after %d answers were cut", object, err, cuts.Load())
				}
				if left := server.Unfinished(t); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

func TestAnUploadThatIsCancelledWhenItHasBecomeVisibleHasSucceeded(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	direct := open(t, config(server))
	for name, size := range map[string]int64{"one request": small, "parts": large} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			through := proxy{answer: func(answer *http.Response) error {
				if isLast(answer, size) {
					cancel()
					return errCut
				}
				return nil
			}}.open(t, server)
			object, err := through.Put(ctx, "cancelled "+name, upload(size))
			if err != nil || object.Size != size {
				t.Errorf("put: %+v, error %v", object, err)
			}
			if ctx.Err() == nil {
				t.Error("it was not cancelled")
			}
			if object, err := direct.Stat(t.Context(), "cancelled "+name); err != nil || object.Size != size {
				t.Errorf("stat: %+v, error %v", object, err)
			}
			if left := server.Unfinished(t); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// changesContent replaces the first byte of what is sent.
func changesContent(r *http.Request) {
	if r.Method == http.MethodPut && r.ContentLength > 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader("y"), skipOne(r.Body)), r.Body}
	}
}

// changesSums makes the store state other sums than those of what it was sent.
func changesSums(answer *http.Response) error {
	for header, other := range map[string][2]string{"ETag": {"0", "1"}, "X-Amz-Checksum-Crc32c": {"=", "A="}} {
		if sum := answer.Header.Get(header); sum != "" {
			answer.Header.Set(header, strings.Replace(sum, other[0], other[1], 1))
		}
	}
	return nil
}

// By HTTPS, requests carry no SHA-256 of their content. There, the store compares parts with
// nothing but their CRC32C.
func TestContentThatIsChangedOnItsWayIsNotStored(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	direct := open(t, config(server))
	for name, tt := range map[string]struct {
		proxy
		open func(p proxy, t *testing.T, server *stores.MinIOServer) *s3.Store
		size int64
		says string
	}{
		"to the store, one request":        {proxy{request: changesContent}, proxy.open, small, "BadDigest"},
		"to the store, parts":              {proxy{request: changesContent}, proxy.open, large, "XAmzContentSHA256Mismatch"},
		"to the store by TLS, one request": {proxy{request: changesContent}, proxy.openTLS, small, "BadDigest"},
		"to the store by TLS, parts":       {proxy{request: changesContent}, proxy.openTLS, large, "XAmzContentChecksumMismatch"},
		"in the store, one request":        {proxy{answer: changesSums}, proxy.open, small, "its ETag is"},
		"in the store, parts":              {proxy{answer: changesSums}, proxy.open, large, "its CRC32C is"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := tt.open(tt.proxy, t, server).Put(t.Context(), "changed", upload(tt.size))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("put: %+v, error %v, want %q in it", object, err, tt.says)
			}
			if object, err := direct.Stat(t.Context(), "changed"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("stat: %+v, error %v", object, err)
			}
			if left := server.Unfinished(t); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// skipOne leaves out the first byte.
func skipOne(r io.Reader) io.Reader {
	_, _ = io.CopyN(io.Discard, r, 1)
	return r
}

func TestServersWithCertificatesOfOwnCAs(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	front := httptest.NewTLSServer(proxy{}.handler(t, server))
	t.Cleanup(front.Close)
	through := config(server)
	through.Endpoint = strings.TrimPrefix(front.URL, "https://") // which it is without a scheme
	if _, err := open(t, through).Put(t.Context(), "key", upload(small)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: %v", err)
	}
	through.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	opened := open(t, through)
	for _, size := range []int64{small, large} {
		if _, err := opened.Put(t.Context(), "key", upload(size)); err != nil {
			t.Errorf("with the CA: %v", err)
		}
	}
}
