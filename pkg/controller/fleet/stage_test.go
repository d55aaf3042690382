// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"maps"
	"testing"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func quiet() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

// stage is a fleet with the handler in front of it, in a synctest bubble.
type stage struct {
	*fleettest.Diary
	t       *testing.T
	handler *handler[*api.EtcdCluster]
	fleet   *Fleet[*api.EtcdCluster]
	events  *record.FakeRecorder
	end     context.CancelFunc
	counted map[string]int
}

func newStage(t *testing.T, clusterWide bool) *stage {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	s := &stage{Diary: fleettest.NewDiary(), t: t, events: record.NewFakeRecorder(100), end: end, counted: map[string]int{}}
	s.fleet = New(Config[*api.EtcdCluster]{
		Noun: "cluster",
		New: func(obj *api.EtcdCluster) (Runner[*api.EtcdCluster], error) {
			return s.New(obj)
		},
		Recorder: s.events, Log: quiet(), Clock: clock.RealClock{},
		Counted: Counted[*api.EtcdCluster]{
			Created: func() { s.counted["created"]++ },
			Deleted: func() { s.counted["deleted"]++ },
			Updated: func(before, after *api.EtcdCluster) {
				s.counted[fmt.Sprintf("updated from %d to %d", before.Spec.Size, after.Spec.Size)]++
			},
		},
	})
	source := &Source[*api.EtcdCluster]{
		Kind: api.EtcdClusterResourceKind, New: func() *api.EtcdCluster { return &api.EtcdCluster{} },
		ClusterWide: clusterWide, Recorder: s.events, Log: quiet(),
	}
	s.handler = &handler[*api.EtcdCluster]{ctx: ctx, source: source, fleet: s.fleet}
	t.Cleanup(func() {
		s.end()
		s.fleet.Wait()
	})
	return s
}

func (s *stage) expect(want ...string) {
	s.t.Helper()
	s.Expect(s.t, want...)
}

func (s *stage) expectCounted(size int, want map[string]int) {
	s.t.Helper()
	if s.fleet.Size() != size || !maps.Equal(s.counted, want) {
		s.t.Errorf("%d of %v, want %d of %v", s.fleet.Size(), s.counted, size, want)
	}
}
