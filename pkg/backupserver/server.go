// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupserver serves backups over HTTP to the first members of restored clusters: GET
// and HEAD of /v1/backup/<name>, for holders of the token. It streams from the store, holds
// one buffer for each request, and knows neither stores nor Kubernetes.
//
// A client that lost its connection continues with `Range: bytes=N-`. `If-Range` or `If-Match`
// with the ETag, the SHA-256 of the backup, protects it from other content. A body shorter
// than its Content-Length is incomplete.
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

// Path is the path of each backup's URL, without the backup's name.
const Path = "/v1/backup/"

// Default limits of a Config.
const (
	DefaultProgressTimeout  = 30 * time.Second
	DefaultRequests         = 32
	DefaultRequestsPerOffer = 3
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 15 * time.Second
	maxHeader     = 16 << 10
	// shutdownGrace is how long connections may take to end at shutdown. Their requests are
	// cancelled by then. When a Lease is lost, all work must end within two seconds
	// (internal/leader).
	shutdownGrace = 500 * time.Millisecond
)

// Config configures a Server. All fields are optional.
type Config struct {
	// Logger logs which client fetches what.
	Logger *logrus.Entry

	// Sent is called with the number of bytes of the backup that a client has received; for
	// metrics. It must be safe for concurrent use.
	Sent func(name string, bytes int)

	// ProgressTimeout bounds how long a client may take for a piece of 64 KiB, and the store
	// for the next piece.
	ProgressTimeout time.Duration

	// Requests is how many clients may fetch at once. The server asks others to retry.
	Requests int

	// RequestsPerOffer is how many clients may fetch the same offer. One more cancels the
	// oldest: a connection that its client has lost, and the server has not noticed yet.
	RequestsPerOffer int
}

// Backup is a backup to serve.
type Backup struct {
	// Size in bytes, and SHA-256 in hexadecimal.
	Size   int64
	SHA256 string

	// Open reads the backup from an offset to its end. The server closes the reader. A Read
	// must return when ctx ends. Open must be safe for concurrent use.
	Open func(ctx context.Context, offset int64) (io.ReadCloser, error)

	// Served is called with the offset up to which a client has received the backup; may be
	// nil. It must be safe for concurrent use, and return soon.
	Served func(upTo int64)

	// Failed is called with the store's error; may be nil. The server has answered or cut off
	// the client, which will retry. Failed must be safe for concurrent use, and return soon.
	Failed func(error)
}

// Reasons why requests end, or do not begin.
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
	requests map[*request]bool // open requests
	stopping bool              // the server rejects new requests
}

// New returns a Server without offers, which does nothing before Run.
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

// Run serves until ctx ends. Then it cancels the open requests: their clients continue at the
// same offset with the next server. It closes the listener. It returns when all requests have
// ended, except those that hang in their stores.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      s.cfg.ProgressTimeout, // a stream extends it piece by piece
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // strangers decide what it would log
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
