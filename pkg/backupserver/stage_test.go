// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// stage is a server that runs, and a client of it.
type stage struct {
	*Server
	url    string
	client *http.Client
	stop   func() error // ends the server, and waits for it
}

// run starts a server. At the end of the test nothing of it may be left.
func run(t *testing.T, cfg Config) *stage {
	t.Helper()
	before := goleak.IgnoreCurrent()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := &stage{Server: New(cfg), url: "http://" + l.Addr().String(), client: &http.Client{Transport: transport}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		transport.CloseIdleConnections()
		goleak.VerifyNone(t, before)
	})
	return s
}

// answer is one of the server, whose body the test closes at its end.
type answer struct{ *http.Response }

// ask sends a request for a backup, with headers in pairs.
func (s *stage) ask(t *testing.T, method, name, token string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+Path+name, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return answer{response}
}

func read(t *testing.T, response answer) string {
	t.Helper()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s: read %d bytes: %v", response.Status, len(content), err)
	}
	return string(content)
}

// content is of a size, and different everywhere.
func content(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return b
}

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// backupOf is content in a store that works.
func backupOf(content []byte) Backup {
	return Backup{Size: int64(len(content)), SHA256: digest(content), Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[offset:])), nil
	}}
}

// from is a store whose reader gives some bytes and then what comes.
func from(size int, open func(ctx context.Context, offset int64) (io.Reader, error)) Backup {
	return Backup{Size: int64(size), SHA256: sum, Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		reader, err := open(ctx, offset)
		return io.NopCloser(reader), err
	}}
}

// hanging reads nothing until its context ends.
type hanging struct {
	ctx   context.Context
	begun chan<- struct{} // may be nil
}

func (h hanging) Read([]byte) (int, error) {
	if h.begun != nil {
		h.begun <- struct{}{}
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// failing reads nothing.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// failures collects the arguments of Failed.
type failures chan error

func (f failures) told(b Backup) Backup {
	b.Failed = func(err error) { f <- err }
	return b
}

func has(response answer, header, want string) bool {
	return strings.Join(response.Header.Values(header), ", ") == want
}
