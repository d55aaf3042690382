// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// The first member fetches the backup and the log after it as one content, and continues at any
// offset after an interruption.
func TestABackupAndItsLogAreOneContent(t *testing.T) {
	dir := t.TempDir()
	obj := testRestore()
	obj.Spec.BackupStorageType, obj.Spec.BackupSource = api.BackupStorageTypeVolume, api.BackupSource{Volume: &api.VolumeBackupSource{Path: "a/etcd"}}
	open := func(ctx context.Context, namespace string, spec *api.RestoreSpec) (*location.Location, error) {
		return location.Open(ctx, nil, namespace, spec.BackupStorageType, spec.BackupSource, dir)
	}
	place, err := open(t.Context(), obj.Namespace, &obj.Spec)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	put := func(key string, content []byte) {
		if _, err := place.Put(t.Context(), key, store.Upload{Body: bytes.NewReader(content), Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
	}
	base := place.Key + "_v10_2026-06-01-00:00:00"
	whole := bytes.Repeat([]byte("base"), 300)
	put(base, whole)
	var last string
	for first := int64(11); first < 40; first += 10 {
		s := &changelog.Segment{Cluster: 0xabc, First: first, Last: first + 9, Until: time.UnixMilli(first)}
		for revision := s.First; revision <= s.Last; revision++ {
			s.Revisions = append(s.Revisions, changelog.Revision{Main: revision, At: time.UnixMilli(revision), Changes: []changelog.Change{{KeyValue: fmt.Appendf(nil, "%d", revision)}}})
		}
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		last = changelog.KeyOf(place.Key, s)
		put(last, text)
		if first < 31 {
			whole = append(whole, text...)
		}
	}
	stat, err := place.Stat(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	modified := metav1.NewTime(stat.Modified)
	backup := &api.RestoredBackup{
		Key: place.Path(base), Size: int64(len(whole)), SnapshotSize: 1200, ClusterID: "0000000000000abc", EtcdRevision: 10, Revision: 25, Modified: &modified,
	}
	for _, offset := range []int{0, 1, 1199, 1200, 1201, 1300, len(whole) - 1} {
		body, err := openAt(t.Context(), newLogList(t.Context(), open, obj, backup, clock.RealClock{}), int64(offset))
		if err != nil {
			t.Fatalf("from %d: %v", offset, err)
		}
		got, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, whole[offset:]) {
			t.Errorf("from %d: %d bytes, want %d: %v", offset, len(got), len(whole)-offset, err)
		}
	}
	backup.Size++
	if _, err := openAt(t.Context(), newLogList(t.Context(), open, obj, backup, clock.RealClock{}), 0); !errors.Is(err, backupserver.ErrReplaced) {
		t.Errorf("another log: %v", err)
	}
	backup.Size, backup.Revision = backup.Size-1, 41
	if _, err := openAt(t.Context(), newLogList(t.Context(), open, obj, backup, clock.RealClock{}), 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a log that ends early: %v", err)
	}
}

// A store may need longer to list a long log than a client waits for its answer. Each new request began
// the list again, and the first member never got the backup.
func TestALongListOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		open := func(ctx context.Context, _ string, _ *api.RestoreSpec) (*location.Location, error) {
			opened++
			select {
			case <-time.After(100 * time.Second): // as a list of many pages
				return nil, store.ErrDenied
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		l := newLogList(t.Context(), open, testRestore(), &api.RestoredBackup{SnapshotSize: 1, Size: 2}, clock.RealClock{})
		for i, want := range []error{context.DeadlineExceeded, context.DeadlineExceeded, context.DeadlineExceeded, store.ErrDenied} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			if _, err := l.get(ctx); !errors.Is(err, want) {
				t.Errorf("request %d: %v, want %v", i, err, want)
			}
			cancel()
		}
		if opened != 1 {
			t.Errorf("listed %d times", opened)
		}
		done := make(chan error)
		go func() {
			_, err := l.get(t.Context())
			done <- err
		}()
		synctest.Wait()
		l.stop()
		if err := <-done; !errors.Is(err, errWithdrawn) || opened != 2 {
			t.Errorf("after an error and a withdrawal: %v, listed %d times", err, opened)
		}
	})
}

// A list continued after its offer had ended, and nobody waited for it.
func TestAListEndsWithItsOffer(t *testing.T) {
	for name, c := range map[string]struct {
		takes, waits time.Duration // after the end of its context
	}{
		"at once":       {},
		"soon":          {takes: 5 * time.Second, waits: 5 * time.Second},
		"not: it hangs": {takes: time.Hour, waits: watchdog.GracePeriod},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened := 0
				var ended atomic.Bool
				open := func(ctx context.Context, _ string, _ *api.RestoreSpec) (*location.Location, error) {
					opened++
					<-ctx.Done()
					time.Sleep(c.takes)
					ended.Store(true)
					return nil, context.Cause(ctx)
				}
				l := newLogList(t.Context(), open, testRestore(), &api.RestoredBackup{SnapshotSize: 1, Size: 2}, clock.RealClock{})
				done := make(chan error)
				go func() {
					_, err := l.get(t.Context())
					done <- err
				}()
				synctest.Wait()
				began := time.Now()
				l.stop()
				if waited := time.Since(began); waited != c.waits || ended.Load() != (c.takes == c.waits) {
					t.Errorf("waited %s; the list has ended: %v", waited, ended.Load())
				}
				if err := <-done; !errors.Is(err, errWithdrawn) {
					t.Errorf("the request: %v", err)
				}
				if _, err := l.get(t.Context()); !errors.Is(err, errWithdrawn) || opened != 1 {
					t.Errorf("a later request: %v, listed %d times", err, opened)
				}
				time.Sleep(c.takes) // the abandoned list ends too
			})
		})
	}
}
