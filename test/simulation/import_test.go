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
		if f.DataRevision == 0 || a.Status.Revision < f.DataRevision {
			f.DataRevision = a.Status.Revision
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
			a.Digest, a.NoDigest = way{r.o, s.Endpoints[i]}.Digest(ctx, f.DataRevision)
		}
	}
	return f
}

func (reach) ShareLogin(cluster.Members) {}

// Digest has the hash of the model as a number of keys. A learner answers serializable reads too.
func (c way) Digest(ctx context.Context, revision int64) (etcd.Digest, error) {
	return asked(ctx, c, fmt.Sprintf("digest at %d", revision), false, func(m *member, reply func(etcd.Digest, error)) {
		if revision > m.machine.revision {
			reply(etcd.Digest{}, rpctypes.ErrFutureRev)
			return
		}
		var sum uint32 // as long as nobody has written
		if revision < int64(len(m.machine.sums)) {
			sum = m.machine.sums[revision]
		}
		reply(etcd.Digest{Keys: int64(sum)}, nil)
	})
}

func (c way) ConnectedTo(ctx context.Context, id uint64) (bool, error) {
	return asked(ctx, c, fmt.Sprintf("connected to %x", id), true, func(m *member, reply func(bool, error)) {
		reply(!m.connectedSince(id).IsZero(), nil)
	})
}
