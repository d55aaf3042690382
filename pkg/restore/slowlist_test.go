// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// slowFiles is a volume on a slow network, with files of the same content. It takes its time for each
// file of a list.
type slowFiles struct {
	nothingStored
	keys    []string
	content []byte
	each    time.Duration
}

func (s slowFiles) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, key := range s.keys {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			select {
			case <-time.After(s.each):
			case <-ctx.Done():
				yield(store.Object{}, context.Cause(ctx))
				return
			}
			if !yield(store.Object{Key: key, Size: int64(len(s.content))}, nil) {
				return
			}
		}
	}
}

func (s slowFiles) Stat(_ context.Context, key string) (store.Object, error) {
	return store.Object{Key: key, Size: int64(len(s.content))}, nil
}

func (s slowFiles) Get(_ context.Context, _ string, offset int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.content[offset:])), nil
}

// A list of many files takes longer than work may make no progress. It began again from nothing, until the
// restore gave up.
func TestALongListOfAVolumeIsProgress(t *testing.T) {
	const each = 10 * time.Second // of 30 files
	var segments, backups []string
	for n := range int64(30) {
		s := &changelog.Segment{Cluster: 0xabc, First: 10*n + 11, Last: 10*n + 20, Until: time.Unix(n, 0)}
		segments = append(segments, changelog.KeyOf("dir/etcd.backup", s))
		backups = append(backups, backupobject.Key("dir/etcd.backup", 5, time.Unix(1e9+n, 0).UTC()))
	}
	moment := metav1.NewTime(time.Unix(1000, 0))
	for name, c := range map[string]struct {
		keys []string
		time *metav1.Time
		want error
	}{
		"of backups":  {backups, nil, nil},
		"of segments": {segments, &moment, selection.ErrOutside}, // that is the answer
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := slowFiles{keys: c.keys, each: each, content: etcdtest.SnapshotFile(binary.LittleEndian, 4, 1)}
				a := &attempt{log: logrus.NewEntry(logrus.New()), obj: onVolume(), cfg: &Config{
					Clock: clock.RealClock{}, Find: selection.Find,
					OpenLocation: func(context.Context, string, *api.RestoreSpec) (*location.Location, error) {
						return &location.Location{Store: files, Key: "dir/etcd.backup"}, nil
					},
				}}
				a.obj.Spec.Pick, a.obj.Spec.Time = api.RestorePickNewest, c.time
				if _, _, err := a.find(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		})
	}
	t.Run("of what is offered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			open := func(context.Context, string, *api.RestoreSpec) (*location.Location, error) {
				return &location.Location{Store: slowFiles{keys: segments, each: each, content: make([]byte, 100)}, Key: "dir/etcd.backup"}, nil
			}
			backup := &api.RestoredBackup{ClusterID: "0000000000000abc", EtcdRevision: 10, Revision: 310, SnapshotSize: 1, Size: 1 + 30*100}
			found, err := newLogList(t.Context(), open, onVolume(), backup, clock.RealClock{}).get(t.Context())
			if err != nil || len(found) != 30 {
				t.Errorf("%d segments, %v", len(found), err)
			}
		})
	})
}
