// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// shelf is a store with one object.
type shelf struct {
	store.Store
	object *store.Object
	reads  *int
}

func (s shelf) Stat(context.Context, string) (store.Object, error) {
	if s.object.Key == "" {
		return store.Object{}, store.ErrNotFound
	}
	return *s.object, nil
}

func (s shelf) Get(context.Context, string, int64) (io.ReadCloser, error) {
	*s.reads++
	return io.NopCloser(strings.NewReader("")), nil
}

func (shelf) Close() error { return nil }

// Between its verification and its way to the first member, the object is replaced by
// one of the same size, or deleted. Nothing of it is fetched, the status shows what to
// do, and an edit has the cluster begin with what is verified then.
func TestABackupThatIsReplacedBeforeItIsFetched(t *testing.T) {
	stored := time.Date(2026, 11, 20, 3, 0, 0, 500, time.UTC)
	for name, tc := range map[string]struct {
		replace func(*store.Object)
		says    string
	}{
		"by one of the same size":   {func(o *store.Object) { o.Modified = stored.Add(24 * time.Hour) }, "it was stored at 2026-11-21T03:00:00Z, and the one that was read at 2026-11-20T03:00:00Z"},
		"by one of another size":    {func(o *store.Object) { o.Size++ }, "it has 1002 bytes, and had 1001"},
		"by nothing: it is deleted": {func(o *store.Object) { o.Key = "" }, "there is no such object"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(3)
				stored, verified := stored, 1 // the cases come in any order
				w.find = func() (selection.Verified, []string, error) {
					b := backup(verified)
					b.Modified = stored
					return b, nil, nil
				}
				object, reads := store.Object{Key: "etcd.backup", Size: 1001, Modified: stored.Add(time.Nanosecond)}, 0
				w.cfg.OpenLocation = func(context.Context, string, *api.RestoreSpec) (*location.Location, error) {
					return &location.Location{Store: shelf{object: &object, reads: &reads}, Bucket: "bucket", Key: "etcd.backup"}, nil
				}
				w.fetch = func(b backupserver.Backup) bool {
					body, err := b.Open(t.Context(), 0)
					if err != nil {
						b.Failed(err)
						return false
					}
					defer body.Close()
					b.Served(b.Size)
					return true
				}
				untouched := object
				tc.replace(&object)
				w.add("etcdrestores", testRestore())
				stop := w.run()
				defer stop()
				w.await("the reason", 2*time.Minute, func() bool {
					st := w.restore().Status
					return st.Phase == api.RestorePhaseStarting && strings.Contains(st.Reason, tc.says) && strings.Contains(st.Reason, "edits of the EtcdRestore are followed")
				})
				w.live(10 * time.Minute)
				if st := w.restore().Status; st.Phase != api.RestorePhaseStarting || !strings.Contains(st.Reason, tc.says) || reads > 0 {
					t.Errorf("%s: %s; %d reads", st.Phase, st.Reason, reads)
				}
				stored, verified = stored.Add(24*time.Hour), 2
				object = store.Object{Key: untouched.Key, Size: 1002, Modified: stored}
				w.edit(func(r *api.EtcdRestore) { r.Spec.Pick = api.RestorePickExact })
				w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
				if c := w.cluster(); c.Status.RestoredFrom.SHA256 != digest(2) || w.restore().Status.Backup.SHA256 != digest(2) {
					t.Errorf("it began with %+v", c.Status.RestoredFrom)
				}
			})
		})
	}
}

// What was sent of another object counts for nothing.
func TestAnotherObjectIsNotToldAsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fetch = func(b backupserver.Backup) bool {
			b.Served(b.Size)
			b.Failed(errors.Join(backupserver.ErrReplaced))
			return false
		}
		w.running(1)
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the reason", 2*time.Minute, func() bool {
			st := w.restore().Status
			return strings.Contains(st.Reason, backupserver.ErrReplaced.Error()) && !strings.Contains(st.Reason, "starts on it")
		})
	})
}
