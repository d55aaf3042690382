// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot takes snapshots of etcd clusters: it chooses the member, and streams and
// verifies the snapshot. It knows nothing of Kubernetes, nor of stores.
package snapshot

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// openLimit is how long a member may take from the request to the first piece of the snapshot.
// etcd first writes its memory to its disk.
const openLimit = 15 * time.Second

// Source is where to take a snapshot from.
type Source struct {
	// Endpoints of one cluster: of all its members, of some, or of a Service in front of them.
	// See etcd.ParseEndpoint.
	Endpoints []etcd.Endpoint
	// TLS is for https endpoints; nil: the system's CAs and no certificate.
	TLS *tls.Config
	// Connect makes the client; nil: etcd's own.
	Connect func(*tls.Config, etcd.Credentials) Client
	// User is who logs in, if etcd asks for a user; zero: nobody.
	User etcd.Credentials
	// Logger logs each member's answer, at level debug.
	Logger *logrus.Entry
}

// Snapshot is a snapshot that is being received. One goroutine reads it. It keeps no more than
// a few pieces in memory.
type Snapshot struct {
	// Endpoint is the URL of the member that sends it.
	Endpoint string
	// Version is the etcd version of this member, such as 3.6.16.
	Version string
	// ClusterID is the ID of the cluster that this member belongs to.
	ClusterID uint64
	// Revision is the lowest revision that the snapshot can hold: the member's just before.
	// etcd does not report a snapshot's own revision.
	Revision int64
	// RaftApplied is the last raft entry that the snapshot holds at the least: that which the
	// member had applied just before.
	RaftApplied uint64
	// Unapplied is how many entries after RaftApplied the snapshot holds at the most. That of a server of
	// data ends with those in the log of the member (internal/raftlog).
	Unapplied uint64
	// Size in bytes, including the sha256 that etcd appends.
	Size int64
	// Linearizable means that the snapshot holds all writes acknowledged before Open. Without
	// a quorum it is false: the snapshot is of the most advanced member found.
	Linearizable bool

	client Client
	cancel context.CancelCauseFunc
	stream Stream
	check  *check
	piece  []byte
	err    error
	sha256 string
	close  sync.Once
}

// Open asks all endpoints, chooses the best member, and begins to read its snapshot. If that
// member fails before it sends anything, Open tries the next. The stream ends with ctx. The
// caller must close the snapshot.
//
// A member must hold all writes acknowledged before Open, have a leader, and have a vote and
// no CORRUPT alarm. Open prefers followers, then the highest revision. Without a quorum, only
// the highest revision counts. The error wraps ErrNoMember if there is no member to choose.
// etcd.IsDenied and etcd.IsTLSFailure classify others.
func Open(ctx context.Context, src Source) (*Snapshot, error) {
	var endpoints []etcd.Endpoint
	for _, ep := range src.Endpoints {
		if !slices.Contains(endpoints, ep) {
			endpoints = append(endpoints, ep)
		}
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("%w: there is no endpoint", ErrNoMember)
	}
	connect := src.Connect
	if connect == nil {
		connect = overNetwork
	}
	client := connect(src.TLS, src.User)
	limit := surveyLimit
	if src.User != (etcd.Credentials{}) {
		limit += etcd.LoginTimeout
	}
	s, err := open(ctx, client, limit, endpoints, src.Logger)
	if err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, client Client, limit time.Duration, endpoints []etcd.Endpoint, log *logrus.Entry) (*Snapshot, error) {
	urls, conns, members := make([]string, len(endpoints)), make([]Conn, len(endpoints)), make([]member, len(endpoints))
	for i, ep := range endpoints {
		conn, err := client.Conn(ep)
		if err != nil {
			return nil, err
		}
		urls[i], conns[i], members[i] = ep.URL, conn, conn
	}
	answers := survey(ctx, limit, urls, members)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("looking for a member to take a backup from: %w", context.Cause(ctx))
	}
	for _, a := range answers {
		tell(log, a)
	}
	picked, err := choose(answers)
	if err != nil {
		return nil, err
	}
	var reasons failures
	for _, i := range picked.ranked {
		s, err := within(ctx, func(ctx context.Context) (*Snapshot, error) { return begin(ctx, conns[i], answers[i]) })
		if err == nil {
			client.Retain(map[etcd.Endpoint]bool{endpoints[i]: true})
			s.client, s.Linearizable = client, picked.linearizable
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("snapshot from %s: %w", urls[i], context.Cause(ctx))
		}
		reasons = append(reasons, failure{urls[i], err})
	}
	return nil, fmt.Errorf("%w: %w", ErrNoMember, reasons)
}

// errSlow ends the wait for the first piece.
var errSlow = fmt.Errorf("no content came within %v", openLimit)

// within begins a snapshot in at most openLimit. The context of begin ends when the snapshot
// is closed.
func within(ctx context.Context, begin func(context.Context) (*Snapshot, error)) (*Snapshot, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(openLimit, func() { cancel(errSlow) })
	s, err := begin(ctx)
	if !limit.Stop() {
		err = errSlow // even if it began a moment before
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	s.cancel = cancel
	return s, nil
}

// begin opens the stream of the member that has answered.
func begin(ctx context.Context, conn Conn, a answer) (*Snapshot, error) {
	connections := conn.Connections()
	// The status must be as new as the snapshot and from the same member, whichever members
	// answer behind the same address.
	status, err := conn.Status(ctx)
	if err != nil {
		return nil, err
	}
	if status.MemberID != a.status.MemberID {
		return nil, errors.New("another member answers there than a moment ago")
	}
	if status.Revision < a.revision() { // another one has answered the read
		return nil, fmt.Errorf("%w: it holds revision %d, and answers there have shown %d", errBehind, status.Revision, a.revision())
	}
	stream, size, err := conn.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if conn.Connections() != connections {
		return nil, errors.New("the connection broke and was replaced")
	}
	if err := credible(size, status.DBSize); err != nil {
		return nil, err
	}
	return &Snapshot{
		Endpoint: a.url,
		Version:  shown(status.Version), ClusterID: status.ClusterID,
		Revision:    status.Revision,
		RaftApplied: status.RaftApplied,
		Unapplied:   status.RaftIndex - min(status.RaftIndex, a.status.RaftApplied, status.RaftApplied),
		Size:        size,
		stream:      stream,
		check:       newCheck(size),
	}, nil
}

// Read reads the snapshot. The error is io.EOF at the end of a complete snapshot: it has the
// announced size, and its content fits the sha256 that etcd has appended. Otherwise the error
// wraps ErrDamaged, and says how much arrived if the stream broke off.
func (s *Snapshot) Read(p []byte) (int, error) {
	for len(s.piece) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.piece, s.err = s.next()
	}
	n := copy(p, s.piece)
	s.piece = s.piece[n:]
	return n, nil
}

func (s *Snapshot) next() ([]byte, error) {
	piece, err := s.stream.Next()
	switch {
	case errors.Is(err, io.EOF):
		s.sha256, err = s.check.finish()
		if err == nil {
			return nil, io.EOF
		}
	case err != nil:
		return nil, fmt.Errorf("the snapshot from %s broke off after %d of %d bytes: %w", s.Endpoint, s.check.got, s.Size, err)
	default:
		err = s.check.add(piece)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot from %s: %w", s.Endpoint, err)
	}
	return piece, nil
}

// SHA256 returns the sha256 of all bytes including the trailer, in hexadecimal, as sha256sum
// prints it. It is empty before Read has returned io.EOF.
func (s *Snapshot) SHA256() string { return s.sha256 }

// Close ends the stream and the connection. A concurrent Read returns an error. Close may be
// called again.
func (s *Snapshot) Close() error {
	s.close.Do(func() {
		s.cancel(nil)
		s.client.Close()
	})
	return nil
}

func tell(log *logrus.Entry, a answer) {
	if log == nil {
		return
	}
	log = log.WithFields(logrus.Fields{"endpoint": a.url, "version": shown(a.status.Version), "revision": a.revision(), "leader": a.leads()})
	if err := errors.Join(a.statusErr, a.agreedErr); err != nil {
		log = log.WithError(err)
	}
	log.Debug("asked a member for a backup")
}
