// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// answerTime is how long the members have for one round of questions.
	answerTime = 10 * time.Second
	// yieldSize and yieldTime bound the part of a snapshot that is read to measure the speed.
	yieldSize = 256 << 20
	yieldTime = 5 * time.Second
)

// Source is how to reach an etcd.
type Source struct {
	// Endpoints are those of all members, one each.
	Endpoints []etcd.Endpoint
	Dial      etcd.Dial
	TLS       *tls.Config      // nil: plain text
	User      etcd.Credentials // zero: none
	// Worthwhile reports whether the data of the members matters, by all other facts. The comparison
	// reads the whole database of each. nil: it does.
	Worthwhile func(Facts) bool
	// Own is what the API server of the EtcdCluster keeps; zero: unknown.
	Own Mark
	// Copies asks for the speed at which the etcd sends its database.
	Copies bool
}

// Mark is an object in the etcd of an API server: its key, and a part of its value that no other
// API server keeps there. Alone is true if few API servers have the key: the key is enough where the
// API server encrypts its objects.
type Mark struct {
	Key, Value string
	Alone      bool
}

// encrypted is how an API server begins a value that it encrypts at rest, as
// https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data shows.
const encrypted = "k8s:enc:"

// namespaceKey is where each API server keeps the namespace kube-system.
const namespaceKey = "/registry/namespaces/kube-system"

// MarkOfNamespace is the mark of the namespace kube-system with this UID.
func MarkOfNamespace(uid string) Mark { return Mark{Key: namespaceKey, Value: uid} }

// MarkOfCluster is the mark of an EtcdCluster.
func MarkOfCluster(namespace, name, uid string) Mark {
	return Mark{Key: "/registry/etcd.database.coreos.com/etcdclusters/" + namespace + "/" + name, Value: uid, Alone: true}
}

// Look asks the endpoints. It sends only reads. A user logs in, which etcd notes in its log.
func (s *Source) Look(ctx context.Context) Facts {
	client := s.client(s.User)
	defer client.Close()
	f := Facts{Answers: make([]Answer, len(s.Endpoints))}
	conns := make([]*etcd.Conn, len(s.Endpoints))
	for i, ep := range s.Endpoints {
		f.Answers[i].Endpoint = ep.URL
		conns[i], f.Answers[i].Err = client.Conn(ep)
	}
	each(ctx, answerTime, f.Answers, func(ctx context.Context, i int) {
		f.Answers[i].Status, f.Answers[i].Err = conns[i].Status(ctx)
	})
	if i := spokesman(f.Answers); i >= 0 {
		s.agreed(ctx, &f, s.Endpoints[i], conns[i])
	}
	f.Token = client.Token()
	if f.NotListed == nil && (s.Worthwhile == nil || s.Worthwhile(f)) {
		digests(ctx, &f, conns)
		if s.Copies {
			f.Yield, f.NotYielded = yield(ctx, f.Answers, conns)
		}
	}
	return f
}

// spokesman returns the index of the member to ask for what all agree on: a voter with a leader, if
// there is one. A learner does not list the members. -1: no member answers.
func spokesman(answers []Answer) int {
	best := -1
	for i, a := range answers {
		switch {
		case a.Err != nil:
		case !a.Status.Learner && a.Status.LeaderID != 0:
			return i
		case best < 0 || answers[best].Status.Learner:
			best = i
		}
	}
	return best
}

// yield reads the beginning of a snapshot, from a follower if there is one.
func yield(ctx context.Context, answers []Answer, conns []*etcd.Conn) (Yield, error) {
	var from *etcd.Conn
	for i, a := range answers {
		if a.Err == nil && (from == nil || a.Status.LeaderID != a.Status.MemberID) {
			from = conns[i]
		}
	}
	if from == nil {
		return Yield{}, errors.New("no member answers")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*yieldTime)
	defer cancel()
	began := time.Now()
	snapshot, err := from.Snapshot(ctx)
	if err != nil {
		return Yield{}, err
	}
	y := Yield{}
	for y.Bytes < yieldSize && time.Since(began) < yieldTime {
		piece, err := snapshot.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return Yield{}, err
		}
		if y.Bytes += int64(len(piece)); err != nil {
			break
		}
	}
	y.Took = max(time.Since(began), time.Millisecond)
	return y, nil
}

func (s *Source) client(user etcd.Credentials) *etcd.Client {
	client := etcd.NewClientThrough(s.TLS, s.Dial)
	client.SetCredentials(user)
	return client
}

// each asks all endpoints without an error at the same time.
func each(ctx context.Context, limit time.Duration, answers []Answer, ask func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var asking sync.WaitGroup
	for i := range answers {
		if answers[i].Err == nil {
			asking.Go(func() { ask(ctx, i) })
		}
	}
	asking.Wait()
}

// agreed asks one member for what all agree on.
func (s *Source) agreed(ctx context.Context, f *Facts, ep etcd.Endpoint, conn *etcd.Conn) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if f.Members, f.NotListed = conn.Members(ctx); f.NotListed != nil {
		return // further reads need a quorum too
	}
	f.ClusterVersion, f.NoClusterVersion = conn.ClusterVersion(ctx)
	f.Authentication = s.asksForUser(ctx, ep)
	f.APIServer, f.NotSearched = s.apiServer(ctx, conn)
}

// apiServer looks for objects of an API server.
func (s *Source) apiServer(ctx context.Context, conn *etcd.Conn) (APIServer, error) {
	if s.Own.Value != "" {
		value, exists, err := conn.Value(ctx, s.Own.Key, 0)
		if err != nil {
			return NoAPIServer, err
		}
		if exists && (strings.Contains(value, s.Own.Value) || s.Own.Alone && strings.HasPrefix(value, encrypted)) {
			return OwnAPIServer, nil
		}
	}
	_, exists, err := conn.Value(ctx, namespaceKey, 0)
	if err != nil || !exists {
		return NoAPIServer, err
	}
	return OtherAPIServer, nil
}

// asksForUser reports whether etcd refuses the result of a read to a client without a user.
func (s *Source) asksForUser(ctx context.Context, ep etcd.Endpoint) bool {
	client := s.client(etcd.Credentials{})
	defer client.Close()
	conn, err := client.Conn(ep)
	if err != nil {
		return false
	}
	position, err := conn.Commits(ctx)
	return err == nil && etcd.IsDenied(position.Refusal)
}

// digests reads the data of the members at a revision that all of them hold, one after the other: it
// costs each of them time that its clients need.
func digests(ctx context.Context, f *Facts, conns []*etcd.Conn) {
	for _, a := range f.Answers {
		if a.Err == nil && (f.DataRevision == 0 || a.Status.Revision < f.DataRevision) {
			f.DataRevision = a.Status.Revision
		}
	}
	for i := range f.Answers {
		if a := &f.Answers[i]; a.Err == nil {
			a.Digest, a.NoDigest = conns[i].Digest(ctx, f.DataRevision)
		}
	}
}
