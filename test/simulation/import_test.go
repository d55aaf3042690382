// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
)

// survey looks at an etcd to import, as importsource.Source.Look does. The model has no
// authentication, no alarms, and no API server that keeps its objects in etcd.
func (r reach) survey(ctx context.Context, s *importsource.Source) importsource.Facts {
	f := importsource.Facts{Answers: make([]importsource.Answer, len(s.Endpoints))}
	var through *way
	for i, ep := range s.Endpoints {
		a := &f.Answers[i]
		a.Endpoint = ep.URL
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		a.Status, a.Err = way{r.o, ep}.Status(ctx)
		cancel()
		if a.Err != nil {
			continue
		}
		if through == nil {
			through = &way{r.o, ep}
		}
		if f.HashRevision == 0 || a.Status.Revision < f.HashRevision {
			f.HashRevision = a.Status.Revision
		}
	}
	if through == nil {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if f.Members, f.NotListed = through.Members(ctx); f.NotListed != nil {
		return f
	}
	f.ClusterVersion, f.NoClusterVersion = through.ClusterVersion(ctx)
	for i := range f.Answers {
		if a := &f.Answers[i]; a.Err == nil {
			a.Hash, a.NoHash = way{r.o, s.Endpoints[i]}.HashKV(ctx, f.HashRevision)
		}
	}
	return f
}

func (reach) ShareLogin(cluster.Members) {}

// PeerHashKV is answered to all callers, because the model has no TLS.
func (r reach) PeerHashKV(ctx context.Context, peer etcd.Endpoint, revision int64) (etcd.Hash, error) {
	return asked(ctx, way{r.o, peer}, fmt.Sprintf("peer hash at %d", revision), false, hashAt(revision))
}

func (c way) HashKV(ctx context.Context, revision int64) (etcd.Hash, error) {
	return confirmed(ctx, c, fmt.Sprintf("hash at %d", revision), hashAt(revision))
}

// Keys returns the hash as one of keys: the model's members never ask for TLS.
func (c way) Keys(ctx context.Context, revision int64) (etcd.Keys, error) {
	_, err := c.HashKV(ctx, revision)
	return etcd.Keys{}, err
}

func hashAt(revision int64) func(*member, func(etcd.Hash, error)) {
	return func(m *member, reply func(etcd.Hash, error)) {
		if revision > m.machine.revision {
			reply(etcd.Hash{}, rpctypes.ErrFutureRev)
			return
		}
		reply(etcd.Hash{Sum: m.machine.sums[revision]}, nil)
	}
}

func (c way) ConnectedTo(ctx context.Context, id uint64) (bool, error) {
	return asked(ctx, c, fmt.Sprintf("connected to %x", id), true, func(m *member, reply func(bool, error)) {
		reply(!m.connectedSince(id).IsZero(), nil)
	})
}
