// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleettest is clusters that only take notes, for tests of fleets and of
// controllers.
package fleettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// EtcdCluster makes an object as an API server would deliver it.
func EtcdCluster(name string, uid types.UID, edits ...func(*api.EtcdCluster)) *api.EtcdCluster {
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

// Size edits the spec.
func Size(n int) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { obj.Spec.Size, obj.Generation = n, obj.Generation+1 }
}

// Phase sets what the status says.
func Phase(p api.ClusterPhase) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { obj.Status.Phase = p }
}

// Scope annotates the object.
func Scope(value string) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, api.ScopeAnnotation, value)
	}
}

// Diary notes what happens to the clusters that it makes, in order.
type Diary struct {
	mu      sync.Mutex
	entries []string
	// Refuse makes New fail, panics makes each Run but the last n panic, and
	// Lingers makes Run continue after its context ended, each by cluster name.
	Refuse  map[string]bool
	Panics  map[string]int
	Lingers map[string]chan struct{}
}

// NewDiary returns an empty Diary.
func NewDiary() *Diary {
	return &Diary{Refuse: map[string]bool{}, Panics: map[string]int{}, Lingers: map[string]chan struct{}{}}
}

func (d *Diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

// Read returns what was noted since the last call.
func (d *Diary) Read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries := d.entries
	d.entries = nil
	return entries
}

// New makes the Runner of an object.
func (d *Diary) New(obj *api.EtcdCluster) (*Diarist, error) {
	if d.Refuse[obj.Name] {
		return nil, errors.New("no such luck")
	}
	return &Diarist{diary: d, name: obj.Name, uid: obj.UID, size: obj.Spec.Size}, nil
}

// Diarist is a cluster that only takes notes.
type Diarist struct {
	diary *Diary
	name  string
	uid   types.UID
	size  int
}

// Run notes its begin and its end.
func (c *Diarist) Run(ctx context.Context) {
	c.diary.note("%s %s begins with size %d", c.name, c.uid, c.size)
	c.diary.mu.Lock()
	panics := c.diary.Panics[c.name] > 0
	c.diary.Panics[c.name]--
	lingers := c.diary.Lingers[c.name]
	c.diary.mu.Unlock()
	if panics {
		panic("nil map") //nolint:forbidigo // a bug that the fleet has to live with
	}
	<-ctx.Done()
	if lingers != nil {
		<-lingers
	}
	c.diary.note("%s %s ends", c.name, c.uid)
}

// Update notes the size.
func (c *Diarist) Update(obj *api.EtcdCluster) {
	c.diary.note("%s %s gets size %d", c.name, obj.UID, obj.Spec.Size)
}

// Wake is noted.
func (c *Diarist) Wake() { c.diary.note("%s %s wakes", c.name, c.uid) }

// Expect compares what happened since the last call, in a synctest bubble.
func (d *Diary) Expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := d.Read(); !slices.Equal(got, want) {
		t.Errorf("happened:\n%q\nexpected:\n%q", got, want)
	}
}
