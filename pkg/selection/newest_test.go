// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func findNewest(t *testing.T, s *shelf, before string) (Verified, []string, error) {
	t.Helper()
	spec := &api.RestoreSpec{Pick: api.RestorePickNewest}
	if before != "" {
		var at metav1.Time
		if err := at.UnmarshalQueryParameter(before); err != nil {
			t.Fatal(err)
		}
		spec.Before = &at
	}
	return Find(t.Context(), s.location("a/etcd"), spec, nil)
}

const (
	monday  = "a/etcd_v9_2026-06-01-00:00:00"
	tuesday = "a/etcd_v10_2026-06-02-00:00:00" // v10 comes before v9 as text
	midweek = "a/etcd_v30_2026-06-03-12:00:00"
	sunday  = "a/etcd_v40_2026-06-07-00:00:00"
)

// week is a schedule's backups, and others beside it.
func week() *shelf {
	s := newShelf()
	for i, key := range []string{monday, tuesday, midweek, sunday} {
		s.put(key, snapshotOf(10+i, byte(i)))
	}
	for _, key := range []string{"a/etcd", "a/etcd_v2_v99_2026-06-09-00:00:00", "a/etcd2_v99_2026-06-09-00:00:00", "a/etcd_v99_2026-06-09-00:00:00.part"} {
		s.put(key, snapshotOf(10, 9))
	}
	return s
}

func TestTheNewestBackupOfTheScheduleIsFound(t *testing.T) {
	for before, want := range map[string]string{
		"":                          sunday,
		"2026-06-07T00:00:00Z":      sunday,
		"2026-06-06T23:59:59Z":      midweek,
		"2026-06-03T13:00:00+02:00": tuesday,
		"2026-06-01T00:00:00Z":      monday,
	} {
		v, passed, err := findNewest(t, week(), before)
		if err != nil || v.Key != want || v.Path != "bucket/"+want || len(passed) > 0 {
			t.Errorf("before %q: %+v, passed over %q, %v", before, v, passed, err)
		}
	}
}

func TestDamagedBackupsArePassedOver(t *testing.T) {
	s := week()
	s.objects[sunday].content = slices.Clone(s.objects[sunday].content)
	s.objects[sunday].content[9000] ^= 1
	s.put(midweek, nil)
	s.objects[tuesday].statErr = store.ErrNotFound
	v, passed, err := findNewest(t, s, "")
	if err != nil || v.Key != monday {
		t.Errorf("%+v, %v", v, err)
	}
	want := []string{
		"bucket/" + sunday + ": the snapshot is damaged: its content does not fit the sha256 at its end",
		"bucket/" + midweek + ": this is no snapshot of etcd: it is empty",
		"bucket/" + tuesday + ": it was deleted meanwhile",
	}
	if !slices.Equal(passed, want) {
		t.Errorf("passed over\n%s\nwant\n%s", strings.Join(passed, "\n"), strings.Join(want, "\n"))
	}
}

func TestNoOlderBackupIsTakenBecauseTheStoreFails(t *testing.T) {
	down := errors.New("down")
	for name, change := range map[string]func(s *shelf){
		"to list":    func(s *shelf) { s.listErr = down },
		"to look":    func(s *shelf) { s.objects[sunday].statErr = down },
		"to give it": func(s *shelf) { s.objects[sunday].faults = []fault{{err: errors.Join(down, store.ErrDenied)}} },
	} {
		s := week()
		change(s)
		if v, _, err := findNewest(t, s, ""); !errors.Is(err, down) || errors.Is(err, ErrDamaged) {
			t.Errorf("the store fails %s: %+v, %v", name, v, err)
		}
	}
}

func TestABackupWithoutAQuorumIsPassedOverForOneThatHoldsMore(t *testing.T) {
	s := week()
	late := "a/etcd_v39_2026-06-08-00:00:00"
	s.put(late, snapshotOf(5, 5), backupobject.MetaLinearizable, "false")
	v, passed, err := findNewest(t, s, "")
	if want := []string{"bucket/" + late + ": it was taken without a quorum, at revision 39, and an older one holds more"}; err != nil || v.Key != sunday || v.Uncertain || !slices.Equal(passed, want) {
		t.Errorf("%+v, passed over %q, %v", v, passed, err)
	}

	// It is better than nothing, and than what holds less.
	s.put(sunday, nil)
	v, passed, err = findNewest(t, s, "")
	if err != nil || v.Key != late || !v.Uncertain || len(passed) != 1 {
		t.Errorf("%+v, passed over %q, %v", v, passed, err)
	}
}

func TestWhatWasLookedForIsTold(t *testing.T) {
	others := newShelf()
	others.put("a/etcd_vault", nil)
	for name, c := range map[string]struct {
		shelf  *shelf
		before string
		want   string
	}{
		"an empty store": {newShelf(), "", "there is no such object: looked for bucket/a/etcd_v<revision>_<YYYY-MM-DD-HH:MM:SS>: no object's key begins so"},
		"others":         {others, "", "of 1 objects whose keys begin so none is named like a backup"},
		"later ones":     {week(), "2020-01-01T00:00:00Z", "begun at 2020-01-01T00:00:00Z or before: of 6 objects whose keys begin so 4 are named like backups, and all of these were begun later"},
	} {
		_, _, err := findNewest(t, c.shelf, c.before)
		if !errors.Is(err, store.ErrNotFound) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", name, err, c.want)
		}
	}
}

func TestNoGoodBackupWaitsForSomebody(t *testing.T) {
	s := week()
	for _, key := range []string{monday, tuesday, midweek, sunday} {
		s.put(key, nil)
	}
	_, passed, err := findNewest(t, s, "")
	if want := "none of the 4 backups that were tried is good; the newest: bucket/" + sunday; !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) || len(passed) != 4 {
		t.Errorf("%v, passed over %q, want %q", err, passed, want)
	}

	for _, key := range []string{monday, tuesday, midweek, sunday} {
		s.objects[key].statErr = store.ErrNotFound
	}
	if _, _, err := findNewest(t, s, ""); !errors.Is(err, store.ErrNotFound) || errors.Is(err, ErrDamaged) {
		t.Errorf("all were deleted: %v", err)
	}
}

// An SRE may restore after somebody has recreated the cluster already, GitOps for one, and the
// schedule has backed up that.
func TestAnOlderBackupOfAHigherRevisionIsTold(t *testing.T) {
	s := newShelf()
	lost, empty := "a/etcd_v4000_2026-07-06-03:30:00", "a/etcd_v2_2026-07-08-03:30:00"
	s.put("a/etcd_v3990_2026-07-05-03:30:00", snapshotOf(3, 0), backupobject.MetaRevision, "3990")
	s.put(lost, snapshotOf(3, 0), backupobject.MetaRevision, "4000")
	s.put("a/etcd_v1_2026-07-07-03:30:00", snapshotOf(3, 0), backupobject.MetaRevision, "1")
	s.put(empty, snapshotOf(3, 0), backupobject.MetaRevision, "2")
	for _, b := range s.objects {
		_, b.Modified, _ = backupobject.ParseKey("a/etcd", b.Key)
	}
	v, passed, err := findNewest(t, s, "")
	if want := "bucket/" + lost + ": it is older, and its revision is 4000, where that of bucket/" + empty + " is 2: if the cluster was lost"; err != nil || v.Key != empty || len(passed) != 1 || !strings.HasPrefix(passed[0], want) {
		t.Errorf("%+v, passed over %q, %v", v, passed, err)
	}
	if v, passed, err := findNewest(t, s, "2026-07-06T12:00:00Z"); err != nil || v.Key != lost || len(passed) > 0 {
		t.Errorf("%+v, passed over %q, %v", v, passed, err)
	}
}
