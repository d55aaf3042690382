// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func quiet() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

// etcdCluster makes an object as an API server would deliver it.
func etcdCluster(name string, uid types.UID, edits ...func(*api.EtcdCluster)) *api.EtcdCluster {
	obj := &api.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdClusterResourceKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Generation: 1},
		Spec:       api.ClusterSpec{Size: 3},
	}
	for _, edit := range edits {
		edit(obj)
	}
	return obj
}

func size(n int) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { obj.Spec.Size, obj.Generation = n, obj.Generation+1 }
}

func phase(p api.ClusterPhase) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { obj.Status.Phase = p }
}

func scope(value string) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, ScopeAnnotation, value) }
}

// diary notes what happens to the clusters that it makes, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
	// refuse makes New fail, panics makes each Run but the last n panic, and
	// lingers makes Run go on after its context ended, each by cluster name.
	refuse  map[string]bool
	panics  map[string]int
	lingers map[string]chan struct{}
}

func newDiary() *diary {
	return &diary{refuse: map[string]bool{}, panics: map[string]int{}, lingers: map[string]chan struct{}{}}
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

// read returns what was noted since the last call.
func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries := d.entries
	d.entries = nil
	return entries
}

func (d *diary) newCluster(obj *api.EtcdCluster) (Cluster, error) {
	if d.refuse[obj.Name] {
		return nil, errors.New("no such luck")
	}
	return &diarist{diary: d, name: obj.Name, uid: obj.UID, size: obj.Spec.Size}, nil
}

// diarist is a cluster that only takes notes.
type diarist struct {
	diary *diary
	name  string
	uid   types.UID
	size  int
}

func (c *diarist) Run(ctx context.Context) {
	c.diary.note("%s %s begins with size %d", c.name, c.uid, c.size)
	c.diary.mu.Lock()
	panics := c.diary.panics[c.name] > 0
	c.diary.panics[c.name]--
	lingers := c.diary.lingers[c.name]
	c.diary.mu.Unlock()
	if panics {
		panic("nil map")
	}
	<-ctx.Done()
	if lingers != nil {
		<-lingers
	}
	c.diary.note("%s %s ends", c.name, c.uid)
}

func (c *diarist) Update(obj *api.EtcdCluster) {
	c.diary.note("%s %s gets size %d", c.name, obj.UID, obj.Spec.Size)
}

func (c *diarist) Wake() { c.diary.note("%s %s wakes", c.name, c.uid) }

// stage is a fleet with the handler in front of it, in a synctest bubble.
type stage struct {
	*diary
	t        *testing.T
	handler  *clusterHandler
	fleet    *fleet
	registry *prometheus.Registry
	events   *record.FakeRecorder
	end      context.CancelFunc
}

func newStage(t *testing.T, clusterWide bool) *stage {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	s := &stage{
		diary: newDiary(), t: t,
		fleet:    newFleet(quiet(), clock.RealClock{}),
		registry: prometheus.NewRegistry(),
		events:   record.NewFakeRecorder(100),
		end:      end,
	}
	var err error
	if s.fleet.metrics, err = newMetrics(s.registry, s.fleet.size); err != nil {
		t.Fatal(err)
	}
	s.fleet.newCluster, s.fleet.recorder = s.newCluster, s.events
	s.handler = &clusterHandler{ctx: ctx, fleet: s.fleet, clusterWide: clusterWide, recorder: s.events, log: quiet()}
	t.Cleanup(func() {
		s.end()
		s.fleet.wait()
	})
	return s
}

// expect compares what happened since the last call.
func (s *stage) expect(want ...string) {
	s.t.Helper()
	synctest.Wait()
	if got := s.read(); !slices.Equal(got, want) {
		s.t.Errorf("happened:\n%q\nexpected:\n%q", got, want)
	}
}

// metric returns the value of a counter or gauge without labels.
func metric(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		m := f.GetMetric()[0]
		return m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
