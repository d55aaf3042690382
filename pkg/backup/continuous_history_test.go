// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// segmentKeys are the keys of a cluster's log.
func (w *logWorld) segmentKeys() (keys []string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for key := range w.store.objects {
		if strings.HasPrefix(key, changelog.ClusterPrefix("etcd", testCluster)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// The members were given other data under the same ID of the cluster. A log that begins again would be
// one of both histories.
func TestALogOfAnotherHistoryIsNeverContinued(t *testing.T) {
	const far = farBehind + 5000
	for name, tc := range map[string]struct {
		replace func(w *logWorld, newest int64) // while the operator is down
		grow    func(w *logWorld)               // after it has refused
	}{
		"etcd is behind the log, and overtakes it": {
			func(w *logWorld, _ int64) { w.member.Replace(testCluster, 50) },
			func(w *logWorld) { w.member.Write(far, 5, 0) },
		},
		"etcd has compacted what would show it": {
			func(w *logWorld, newest int64) { w.member.Replace(testCluster, int(newest)+100) },
			func(w *logWorld) {
				at, _ := w.member.Position(w.t.Context())
				w.member.Compact(at.Revision)
			},
		},
		"the end of the log is damaged": {
			func(w *logWorld, _ int64) {
				w.member.Replace(testCluster, 50)
				w.store.mu.Lock()
				defer w.store.mu.Unlock()
				for key, o := range w.store.objects {
					if strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
						o.content = []byte("damaged")
						w.store.objects[key] = o
					}
				}
			},
			func(w *logWorld) { w.member.Write(far, 5, 0) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				defer func() { stop() }()
				w.write(2 * time.Minute)
				stop()
				before := w.segmentKeys()
				tc.replace(w, w.continuous().NewestRevision)
				stop = w.run()
				look := func(when string) {
					t.Helper()
					time.Sleep(5 * time.Minute)
					st := w.continuous()
					if got := w.segmentKeys(); !slices.Equal(got, before) {
						t.Errorf("%s: %d segments were added", when, len(got)-len(before))
					}
					if st.Recording || !strings.Contains(st.Reason, "name another path") || st.OtherHistory != "bucket/"+before[len(before)-1] {
						t.Errorf("%s: %+v", when, st)
					}
				}
				look("at first")
				stop()
				tc.grow(w)
				stop = w.run()
				look("later")
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.S3.Path = "bucket/other" })
				time.Sleep(5 * time.Minute)
				if st := w.continuous(); !st.Recording || st.OtherHistory != "" {
					t.Errorf("at another path: %+v", st)
				}
			})
		})
	}
}

// A member that was behind for a moment had the history of the log.
func TestALogContinuesWhenItsHistoryIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		defer func() { stop() }()
		w.write(2 * time.Minute)
		stop()
		original := w.member.Swap(testCluster, 50)
		stop = w.run()
		time.Sleep(5 * time.Minute)
		if st := w.continuous(); st.Recording || st.OtherHistory == "" {
			t.Errorf("meanwhile: %+v", st)
		}
		original()
		w.write(5 * time.Minute)
		st := w.continuous()
		if r := w.log(testCluster, st.StartRevision-1); !st.Recording || st.Gaps != 0 || st.OtherHistory != "" || r.Last < st.NewestRevision {
			t.Errorf("after it: %+v", st)
		}
	})
}
