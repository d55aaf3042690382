// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func scheduled(name string) api.EtcdBackup {
	taken := metav1.NewTime(now.Add(-6 * time.Hour))
	return api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u"},
		Spec: api.BackupSpec{
			EtcdCluster: &api.EtcdClusterRef{Name: "orders"}, StorageType: api.BackupStorageTypeS3,
			BackupSource: api.BackupSource{S3: &api.S3BackupSource{Path: "mybucket/orders", AWSSecret: "aws", Endpoint: "http://minio"}},
			BackupPolicy: &api.BackupPolicy{Schedule: "@hourly", MaxBackups: 3, TimeoutInSecond: 300},
		},
		Status: api.BackupStatus{Key: "mybucket/orders_v80912_2026-11-22-06:00:00", EtcdRevision: 80912, LastSuccessDate: &taken},
	}
}

func once(name string) api.EtcdBackup {
	b := scheduled(name)
	b.Spec.BackupPolicy = nil
	return b
}

func TestTheBackupThatIsMeant(t *testing.T) {
	for _, test := range []struct {
		list       []api.EtcdBackup
		name, want string
		failure    string
	}{
		{[]api.EtcdBackup{once("a"), scheduled("b")}, "", "b", ""},
		{[]api.EtcdBackup{once("a"), scheduled("b")}, "a", "a", ""},
		{[]api.EtcdBackup{once("a")}, "", "a", ""},
		{[]api.EtcdBackup{scheduled("a"), scheduled("b")}, "", "", "choose one of a, b with --from"},
		{[]api.EtcdBackup{scheduled("a")}, "c", "", "no EtcdBackup c names"},
		{nil, "", "", "no EtcdBackup names the EtcdCluster orders"},
	} {
		got, err := Choose(test.list, "orders", test.name)
		switch {
		case test.failure != "":
			if err == nil || !strings.Contains(err.Error(), test.failure) {
				t.Errorf("the error is %v, want %q", err, test.failure)
			}
		case err != nil || got.Name != test.want:
			t.Errorf("chose %v, %v; want %s", got, err, test.want)
		}
	}
}

func TestABackupThatIsMadeOnceHasAKeyOfItsOwn(t *testing.T) {
	like := scheduled("nightly")
	like.Spec.Continuous, like.Spec.RestoreTest = &api.ContinuousBackup{}, &api.RestoreTest{}
	b, err := Once(&like, now)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name != "nightly-manual-20261122-120000" || b.UID != "" || b.Spec.S3.Path != "mybucket/orders-manual-20261122-120000" {
		t.Errorf("made %+v", b)
	}
	if b.Spec.Periodic() || b.Spec.BackupPolicy.TimeoutInSecond != 300 || b.Spec.BackupPolicy.MaxBackups != 0 {
		t.Errorf("its policy is %+v", b.Spec.BackupPolicy)
	}
	if b.Spec.S3.AWSSecret != "aws" || b.Spec.S3.Endpoint != "http://minio" || like.Spec.S3.Path != "mybucket/orders" {
		t.Errorf("its store is %+v, that of the other one %+v", b.Spec.S3, like.Spec.S3)
	}
	// A log needs a schedule, and so does a test of each backup.
	if b.Spec.Continuous != nil || b.Spec.RestoreTest != nil || like.Spec.Continuous == nil {
		t.Errorf("it has the log %+v and the test %+v", b.Spec.Continuous, b.Spec.RestoreTest)
	}
	if errs := api.ValidateEtcdBackup(b); len(errs) > 0 {
		t.Errorf("it is refused: %v", errs)
	}
}

func TestRestores(t *testing.T) {
	regular, single := scheduled("nightly"), once("single")
	for name, test := range map[string]struct {
		from   *api.EtcdBackup
		pick   Pick
		kind   api.RestorePick
		path   string
		before bool
	}{
		"newest":        {&regular, Pick{Newest: true}, api.RestorePickNewest, "mybucket/orders", false},
		"before":        {&regular, Pick{Before: now}, api.RestorePickNewest, "mybucket/orders", true},
		"key":           {&regular, Pick{Key: "mybucket/other"}, api.RestorePickExact, "mybucket/other", false},
		"newest of one": {&single, Pick{Newest: true}, api.RestorePickExact, "mybucket/orders", false},
	} {
		r, err := Restore("orders", test.from, test.pick)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Spec.Pick != test.kind || r.Spec.S3.Path != test.path || (r.Spec.Before != nil) != test.before || r.Spec.S3.AWSSecret != "aws" {
			t.Errorf("%s: %+v", name, r.Spec)
		}
		if errs := api.ValidateEtcdRestore(r); len(errs) > 0 {
			t.Errorf("%s: it is refused: %v", name, errs)
		}
	}
	if got := strings.Join(Loss(Contents{Revision: 80900}, Pick{}, Current{Revision: 81500, Confirmed: true}, now), "\n"); !strings.Contains(got, "600 revisions are lost") || strings.Contains(got, "that time") {
		t.Errorf("of an earlier revision it says %q", got)
	}
	if r, err := Restore("orders", &regular, Pick{Moment: now}); err == nil {
		t.Errorf("without a log, a moment gives %+v", r.Spec)
	}
	regular.Spec.Continuous = &api.ContinuousBackup{}
	if r, err := Restore("orders", &regular, Pick{Moment: now}); err != nil || !r.Spec.Time.Time.Equal(now) || len(api.ValidateEtcdRestore(r)) > 0 {
		t.Errorf("of a moment: %+v, %v", r, err)
	}
	if _, err := Restore("orders", &single, Pick{Before: now}); err == nil {
		t.Error("a backup that is made once has several to choose from")
	}
}

func TestWhatARestoreLoses(t *testing.T) {
	regular := scheduled("nightly")
	for name, test := range map[string]struct {
		pick    Pick
		current int64
		want    []string
	}{
		"newest":         {Pick{Newest: true}, 81500, []string{"588 revisions are lost", "since 2026-11-22T06:00:00Z (6h0m0s ago)"}},
		"same revision":  {Pick{Newest: true}, 80912, []string{"no write is lost"}},
		"another life":   {Pick{Newest: true}, 12, []string{"it is a newer cluster", "All its data is lost"}},
		"before, newest": {Pick{Before: now.Add(-time.Hour)}, 81500, []string{"588 revisions are lost"}},
		"before, older":  {Pick{Before: now.Add(-24 * time.Hour)}, 81500, []string{"since 2026-11-21T12:00:00Z (24h0m0s ago)", "chooses the backup"}},
		"a moment":       {Pick{Moment: now.Add(-time.Minute)}, 81500, []string{"since 2026-11-22T11:59:00Z (1m0s ago)"}},
		"key of the schedule": {
			Pick{Key: "mybucket/orders_v80000_2026-11-20-06:00:00"}, 81500,
			[]string{"1500 revisions are lost", "since 2026-11-20T06:00:00Z"},
		},
	} {
		got := strings.Join(Loss(Known(&regular, test.pick), test.pick, Current{Revision: test.current, Confirmed: true}, now), "\n")
		for _, want := range append(test.want, "The restore replaces all members") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", name, want, got)
			}
		}
	}
}

func TestOneWayToChooseIsNeeded(t *testing.T) {
	for _, p := range []Pick{{}, {Newest: true, Key: "a/b"}, {Key: "a/b", Before: now}, {Moment: now, Newest: true}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	if err := (Pick{Key: "a/b"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestTimes(t *testing.T) {
	if got, err := ParseBefore("2h", now); err != nil || !got.Equal(now.Add(-2*time.Hour)) {
		t.Errorf("2h is %v, %v", got, err)
	}
	if got, err := ParseBefore("2026-11-21T03:30:00+01:00", now); err != nil || got.UTC().Hour() != 2 {
		t.Errorf("it is %v, %v", got, err)
	}
	for _, text := range []string{"yesterday", "-2h", ""} {
		if _, err := ParseBefore(text, now); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
