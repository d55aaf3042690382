// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// shared is a path with a backup and the log of one cluster, and later backups of another one that
// has reached the same revisions.
func shared(t *testing.T) *shelf {
	t.Helper()
	s := newShelf()
	cluster := func(id uint64) []string { return []string{backupobject.MetaCluster, fmt.Sprintf("%016x", id)} }
	s.put(tuesday, holding(t, 15, 25), cluster(first)...)
	s.record(t, first, 26, 25, 250)
	s.record(t, first, 26, 33, 335)
	s.put(midweek, holding(t, 4, 30), cluster(second)...)
	s.record(t, second, 31, 35, 355)
	s.put(sunday, holding(t, 4, 40), cluster(second)...)
	return s
}

func TestABackupOfAnotherClusterIsPassedOver(t *testing.T) {
	for _, tc := range []struct {
		cluster  string
		revision int64
		want     string
	}{
		{"aaaa", 0, tuesday},
		{"aaaa", 20, tuesday},
		{"000000000000aaaa", 33, tuesday},
		{"bbbb", 0, sunday},
		{"bbbb", 33, sunday},
		{"", 33, sunday}, // the newest that holds it
	} {
		spec := &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: tc.revision, ClusterID: tc.cluster}
		v, passed, err := Find(t.Context(), shared(t).location("a/etcd"), spec, nil)
		if err != nil || v.Key != tc.want || v.Revision != tc.revision {
			t.Errorf("revision %d of cluster %q: %d of %s, passed over %q, %v", tc.revision, tc.cluster, v.Revision, v.Key, passed, err)
		}
	}
}

// What one cluster wrote without a quorum is compared only with what it wrote with one.
func TestABackupOfAnotherClusterOutrunsNone(t *testing.T) {
	s := newShelf()
	own := []string{backupobject.MetaCluster, fmt.Sprintf("%016x", first)}
	s.put(monday, snapshotOf(10, 1), backupobject.MetaCluster, fmt.Sprintf("%016x", second))
	s.put("a/etcd_v40_2026-05-31-00:00:00", snapshotOf(11, 2), own...)
	s.put(tuesday, snapshotOf(12, 3), append(own, backupobject.MetaLinearizable, "false")...)
	v, passed, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, ClusterID: "aaaa"}, nil)
	if err != nil || v.EtcdRevision != 40 {
		t.Errorf("%+v, passed over %q, %v", v, passed, err)
	}
}

func TestNoBackupOfTheClusterIsAnError(t *testing.T) {
	for what, tc := range map[string]struct {
		revision int64
		metadata []string
		says     string
	}{
		"none":          {0, []string{backupobject.MetaCluster, "000000000000cccc"}, "comes from the cluster 000000000000cccc"},
		"of a revision": {20, []string{backupobject.MetaCluster, "000000000000cccc"}, "comes from the cluster 000000000000cccc"},
		"unknown":       {0, nil, "does not say which cluster it comes from"},
	} {
		s := newShelf()
		s.put(tuesday, holding(t, 15, 25), tc.metadata...)
		_, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: tc.revision, ClusterID: "aaaa"}, nil)
		if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "000000000000aaaa") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAMomentOfTwoLogsIsTold(t *testing.T) {
	for cluster, want := range map[string]struct{ key, says string }{
		"":     {sunday, "contains the moment 2026-07-01T00:05:12Z too: to restore that one, set spec.clusterID: 000000000000aaaa"},
		"aaaa": {tuesday, ""},
		"bbbb": {sunday, ""},
	} {
		s := shared(t)
		s.record(t, second, 31, 30, 300)
		s.put(sunday, holding(t, 4, 30), backupobject.MetaCluster, fmt.Sprintf("%016x", second))
		spec := &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(312)}, ClusterID: cluster}
		v, passed, err := Find(t.Context(), s.location("a/etcd"), spec, nil)
		told := strings.Join(passed, "\n")
		if err != nil || v.Key != want.key || v.Revision != 31 || !strings.Contains(told, want.says) || strings.Contains(told, "spec.clusterID") != (want.says != "") {
			t.Errorf("cluster %q: revision %d of %s, passed over %q, %v", cluster, v.Revision, v.Key, passed, err)
		}
	}
}

func TestARevisionOfTwoLogsIsTold(t *testing.T) {
	spec := &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: 33}
	_, passed, err := Find(t.Context(), shared(t).location("a/etcd"), spec, nil)
	if err != nil || !strings.Contains(strings.Join(passed, "\n"), "spec.clusterID: 000000000000aaaa") {
		t.Errorf("passed over %q, %v", passed, err)
	}
	for _, only := range []*api.RestoreSpec{
		{Pick: api.RestorePickNewest, Revision: 33, ClusterID: "bbbb"},
		{Pick: api.RestorePickNewest, Revision: 38},
		{Pick: api.RestorePickNewest},
	} {
		if _, passed, err := Find(t.Context(), shared(t).location("a/etcd"), only, nil); err != nil || strings.Contains(strings.Join(passed, "\n"), "spec.clusterID") {
			t.Errorf("%+v: passed over %q, %v", only, passed, err)
		}
	}
}
