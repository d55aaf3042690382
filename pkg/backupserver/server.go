// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupserver serves backups to the first members of restored clusters,
// over HTTP: GET and HEAD of /v1/backup/<name>, to those who have the token. It
// streams from the store, holds one buffer for each request, and knows neither
// stores nor Kubernetes.
//
// A client that lost its connection goes on with `Range: bytes=N-` and, so that it
// gets no other content, `If-Range` or `If-Match` with the ETag, which is the SHA-256
// of the backup. A body that is shorter than its Content-Length was cut off.
package backupserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// Path is what the path of each backup's URL begins with; its name follows.
const Path = "/v1/backup/"

// Limits that a Config without them has.
const (
	DefaultProgressTimeout  = 30 * time.Second
	DefaultRequests         = 32
	DefaultRequestsPerOffer = 3
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 15 * time.Second
	maxHeader     = 16 << 10
	// shutdownGrace is how long connections may take to end when the server does.
	// Their requests have been cut off by then, and when a Lease is lost, all work has
	// to end within two seconds (internal/leader).
	shutdownGrace = 500 * time.Millisecond
)

// Config is what a Server is made with. All of it may be left out.
type Config struct {
	// Logger is told who fetches what.
	Logger *logrus.Entry

	// Sent is told how many bytes of the backup of a name a client was sent, from
	// many goroutines; for metrics.
	Sent func(name string, bytes int)

	// ProgressTimeout is how long a client may take for a piece of 64 KiB, and the
	// store for the next one.
	ProgressTimeout time.Duration

	// Requests is how many clients may fetch at once; others are asked to come back.
	Requests int

	// RequestsPerOffer is how many of them may fetch the same offer. One more cuts
	// off the oldest, which is the connection that a client has lost and that this
	// end still takes for alive.
	RequestsPerOffer int
}

// Backup is what is served.
type Backup struct {
	// Size in bytes, and SHA-256 in hexadecimal.
	Size   int64
	SHA256 string

	// Open reads the backup from an offset on, to its end. The reader is closed
	// after use; it must not outlive ctx: a Read that is under way when ctx ends
	// returns. It may be called concurrently.
	Open func(ctx context.Context, offset int64) (io.ReadCloser, error)

	// Served is told up to which byte a client was sent the backup, whenever it is
	// sent more; nil: nobody is. It may be called concurrently, and must return soon.
	Served func(upTo int64)

	// Failed is told why the store could not give what the client asked for; nil:
	// nobody is. The client was answered, or cut off, and will ask again. It may be
	// called concurrently, and must return soon.
	Failed func(error)
}

// Why requests end, or don't begin.
var (
	errWithdrawn  = errors.New("the backup is not offered any more")
	errSuperseded = errors.New("a newer request of the same backup took its place")
	errStopping   = errors.New("the server ends")
	errBusy       = errors.New("too many backups are being fetched")
	errOther      = errors.New("the object in the store is not the backup that was verified: see the EtcdRestore")
)

// Server serves backups.
type Server struct {
	cfg Config

	mu       sync.Mutex
	offers   []*offer
	requests map[*request]bool // under way
	stopping bool              // no request begins any more
}

// New returns a Server that offers nothing yet. Nothing happens before Run.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		cfg.Logger = logrus.NewEntry(silent)
	}
	if cfg.Sent == nil {
		cfg.Sent = func(string, int) {}
	}
	if cfg.ProgressTimeout <= 0 {
		cfg.ProgressTimeout = DefaultProgressTimeout
	}
	if cfg.Requests <= 0 {
		cfg.Requests = DefaultRequests
	}
	if cfg.RequestsPerOffer <= 0 {
		cfg.RequestsPerOffer = DefaultRequestsPerOffer
	}
	return &Server{cfg: cfg, requests: map[*request]bool{}}
}

// Run serves until ctx ends. Then it cuts off the requests under way, since their
// clients go on where they are when they find the next server. It closes the
// listener, and returns when all requests have ended that do not hang in their stores.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      s.cfg.ProgressTimeout, // what streams prolongs it piece by piece
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // of what strangers send
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit(l, maxConnections)) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("serve backups on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		server.Close()
	}
	if err == nil {
		<-served
	}
	return err
}
