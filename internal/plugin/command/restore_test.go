// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func (w *world) restoreObject() (*api.EtcdRestore, error) {
	return w.etcd.EtcdV1beta2().EtcdRestores("default").Get(w.t.Context(), "orders", metav1.GetOptions{})
}

func TestADryRunOfARestoreChangesNothing(t *testing.T) {
	w := newWorld(t, nightly())
	code, out, errOut := w.run("restore", "orders", "--newest", "--dry-run")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "EtcdCluster orders is SERVING", "588 revisions are lost", "Back it up first: kubectl etcd backup orders -n default",
		"kind: EtcdRestore", "pick: Newest", "path: mybucket/orders", "awsSecret: aws")
	if _, err := w.restoreObject(); !apierrors.IsNotFound(err) {
		t.Errorf("there is an EtcdRestore: %v", err)
	}
}

// manual is what the backup command creates.
func manual(ago time.Duration) *api.EtcdBackup {
	taken := metav1.NewTime(now.Add(-ago))
	b := nightly()
	b.Name, b.Spec.BackupPolicy = "nightly-manual-20261122-113000", nil
	b.Spec.S3.Path = "mybucket/orders-manual-20261122-113000"
	b.Status = api.BackupStatus{Phase: api.BackupPhaseSucceeded, Succeeded: true, LastSuccessDate: &taken, Key: b.Spec.S3.Path, EtcdRevision: 81499}
	return b
}

// Without a quorum, the cluster may have taken writes after the last revision that anybody knows.
func TestARestoreClaimsNoCompletenessWithoutAQuorum(t *testing.T) {
	const later = ", and later writes are not known"
	for name, test := range map[string]struct {
		backup int64
		change func(*world)
		want   string
	}{
		"the backup has what is recorded": {81503, func(*world) {}, "The operator recorded revision 81503 at 2026-11-22T11:58:00Z" + later + ". The backup is at revision 81503."},
		"the backup has more":             {81504, func(*world) {}, "The operator recorded revision 81503 at 2026-11-22T11:58:00Z" + later + ". The backup is at revision 81504."},
		"the backup has less":             {80912, func(*world) {}, "The backup is at revision 80912: at least 591 revisions are lost."},
		"a survivor has applied more":     {81503, func(w *world) { w.members["orders-c"].Status.Header.Revision = 81507 }, "Revision 81507 is known to be committed" + later + ". The backup is at revision 81503: at least 4 revisions are lost."},
		"the operator has seen more since": {81503, func(w *world) {
			w.update(func(c *api.EtcdCluster) { c.Status.Recovery = &api.RecoveryStatus{LastRevision: 81504} })
		}, "Revision 81504 is known to be committed" + later + ". The backup is at revision 81503: at least 1 revision is lost."},
		"the members cannot be asked": {81503, func(w *world) { w.update(withTLS) }, "The operator recorded revision 81503 at"},
	} {
		backup := nightly()
		backup.Status.EtcdRevision = test.backup
		w := lostQuorum(t, 81503, backup)
		test.change(w)
		code, out, errOut := w.run("restore", "orders", "--newest", "--dry-run")
		if code != 0 || !strings.Contains(out, test.want) || strings.Contains(out, "no write is lost") || strings.Contains(out, "newer cluster") {
			t.Errorf("%s: want %q, exit code %d: %s%s", name, test.want, code, out, errOut)
		}
	}
}

// A backup holds no write that comes after its begin, however long it takes.
func TestARestoreLosesTheWritesSinceTheBackupBegan(t *testing.T) {
	slow := nightly()
	done := metav1.NewTime(now.Add(-5 * time.Hour))
	slow.Status.LastSuccessDate = &done
	_, out, _ := newWorld(t, slow).run("restore", "orders", "--newest", "--dry-run")
	contains(t, out, "All writes since 2026-11-22T06:00:00Z (6h0m0s ago) are lost.")
	w := newWorld(t, slow)
	w.update(func(c *api.EtcdCluster) { c.Status.Record = recorded(81500) })
	for _, name := range names {
		w.members[name].NoQuorum = errors.New("etcdserver: no leader")
	}
	_, out, _ = w.run("recover", "orders")
	contains(t, out, "all since 2026-11-22T06:00:00Z (6 h ago)")
}

func TestARestoreNamesANewerBackup(t *testing.T) {
	const hint = "--from nightly-manual-20261122-113000 restores it"
	for args, want := range map[string]bool{"--newest": true, "--before 2h": false, "--key mybucket/other": false, "--newest --from nightly-manual-20261122-113000": false} {
		w := newWorld(t, nightly(), manual(30*time.Minute))
		code, out, errOut := w.run(append([]string{"restore", "orders", "--dry-run"}, strings.Split(args, " ")...)...)
		if code != 0 || strings.Contains(out, hint) != want {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, errOut)
		}
	}
}

func TestABackupUsesNoStoreOfAnEarlierOne(t *testing.T) {
	once := nightly()
	once.Name, once.Spec.BackupPolicy = "once", nil
	w := newWorld(t, once, manual(30*time.Minute))
	code, out, errOut := w.run("backup", "orders", "--dry-run", "-o", "name")
	if want := "etcdbackup.etcd.database.coreos.com/once-manual-20261122-120000\n"; code != 0 || out != want {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

func TestARestoreAsksForTheName(t *testing.T) {
	for typed, want := range map[string]string{"": "nobody typed the name", "order\n": `"order" is not "orders"`} {
		w := newWorld(t, nightly())
		w.in.WriteString(typed)
		code, _, errOut := w.run("restore", "orders", "--newest")
		if code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("exit code %d: %s", code, errOut)
		}
		if _, err := w.restoreObject(); !apierrors.IsNotFound(err) {
			t.Errorf("there is an EtcdRestore: %v", err)
		}
	}
	w := newWorld(t, nightly())
	w.in.WriteString("orders\n")
	code, out, errOut := w.run("restore", "orders", "--before", "2026-11-22T07:00:00Z", "--wait=false", "--keep-volumes")
	if code != 0 || !strings.HasSuffix(out, "etcdrestore/orders created\n") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	r, err := w.restoreObject()
	if err != nil || r.Spec.Before == nil || r.Spec.OldVolumes != api.OldVolumesKeep {
		t.Errorf("made %+v, %v", r, err)
	}
}

func TestARestoreOfAMoment(t *testing.T) {
	b := nightly()
	b.Spec.Continuous = &api.ContinuousBackup{}
	w := newWorld(t, b)
	code, out, errOut := w.run("restore", "orders", "--time", "5m", "--wait=false", "--confirm", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "The moment ", "from the backups of the EtcdBackup nightly and their log", "(5m0s ago) are lost")
	if r, err := w.restoreObject(); err != nil || r.Spec.Time == nil || !r.Spec.Time.Time.Equal(now.Add(-5*time.Minute)) || r.Spec.Pick != api.RestorePickNewest {
		t.Errorf("made %+v, %v", r, err)
	}
}

func TestARestoreIsFollowedToItsEnd(t *testing.T) {
	w := newWorld(t, nightly())
	w.tick()
	phases := []api.RestorePhase{"", api.RestorePhaseVerifying, api.RestorePhaseStopping, api.RestorePhaseGrowing, api.RestorePhaseSucceeded}
	created, looks := false, 0
	w.etcd.PrependReactor("create", "etcdrestores", func(k8stesting.Action) (bool, runtime.Object, error) { created = true; return false, nil, nil })
	w.etcd.PrependReactor("get", "etcdrestores", func(k8stesting.Action) (bool, runtime.Object, error) {
		if !created {
			return false, nil, nil
		}
		phase := phases[min(looks/2, len(phases)-1)] // each is seen twice, and reported once
		looks++
		return true, &api.EtcdRestore{Status: api.RestoreStatus{Phase: phase, Succeeded: phase == api.RestorePhaseSucceeded}}, nil
	})
	code, out, errOut := w.run("restore", "orders", "--newest", "--confirm", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "waiting for the restore operator", "Verifying", "Stopping", "Growing", "Succeeded")
	if n := strings.Count(out, "Stopping"); n != 1 {
		t.Errorf("Stopping is reported %d times", n)
	}
}

func TestARestoreThatIsRefused(t *testing.T) {
	old := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "default"}, Status: api.RestoreStatus{Phase: api.RestorePhaseStopping}}
	for name, test := range map[string]struct {
		objects []runtime.Object
		args    []string
		want    string
	}{
		"another one is under way": {[]runtime.Object{nightly(), old}, []string{"orders", "--newest"}, "is under way (Stopping)"},
		"no way to choose":         {[]runtime.Object{nightly()}, []string{"orders"}, "one of --newest, --before, --time and --key"},
		"two ways to choose":       {[]runtime.Object{nightly()}, []string{"orders", "--newest", "--key", "a/b"}, "one of --newest, --before, --time and --key"},
		"no backups":               {nil, []string{"orders", "--newest"}, "no EtcdBackup names the EtcdCluster orders"},
		"no cluster":               {[]runtime.Object{nightly()}, []string{"users", "--newest"}, "If the EtcdCluster is gone too"},
	} {
		w := newWorld(t, test.objects...)
		if code, _, errOut := w.run(append([]string{"restore", "--confirm", "orders"}, test.args...)...); code != 1 || !strings.Contains(errOut, test.want) {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
	}
}

func TestAnEarlierRestoreMakesWay(t *testing.T) {
	done := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "default", UID: "old"}, Status: api.RestoreStatus{Phase: api.RestorePhaseSucceeded, Succeeded: true}}
	w := newWorld(t, nightly(), done)
	if code, _, errOut := w.run("restore", "orders", "--newest", "--confirm", "orders", "--wait=false"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if r, err := w.restoreObject(); err != nil || r.UID == "old" || r.Status.Succeeded {
		t.Errorf("there is %+v, %v", r, err)
	}
}

func TestBackupIsFollowedToItsEnd(t *testing.T) {
	w := newWorld(t, nightly())
	w.tick()
	looks := 0
	w.etcd.PrependReactor("get", "etcdbackups", func(k8stesting.Action) (bool, runtime.Object, error) {
		looks++
		b := nightly()
		b.Name, b.Status = "nightly-manual-20261122-120000", api.BackupStatus{}
		if looks > 1 {
			b.Status.Phase = api.BackupPhaseRunning
		}
		if looks > 2 {
			b.Status = api.BackupStatus{Phase: api.BackupPhaseSucceeded, Succeeded: true, Key: "mybucket/k", EtcdRevision: 81500, EtcdVersion: "3.7.3", Size: 1 << 20}
		}
		return true, b, nil
	})
	code, out, errOut := w.run("backup", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "etcdbackup/nightly-manual-20261122-120000 created", "waiting for the backup operator", "Running", "stored mybucket/k: revision 81500 of etcd 3.7.3, 1.0Mi")
}

func TestBackupsAreListed(t *testing.T) {
	w := newWorld(t, nightly())
	code, out, _ := w.run("backups", "orders")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	const key = "mybucket/orders_v80912_2026-11-22-06:00:00"
	contains(t, out, "nightly   Waiting   0 6 * * *   6 h ago   80912      yes        "+key)
	_, out, _ = w.run("backups", "orders", "-o", "wide")
	contains(t, out, key+"   S3      700.0Mi   7      in 18 h")
	if _, out, errOut := newWorld(t).run("backups", "orders"); out != "" || errOut != "No EtcdBackup names the EtcdCluster orders.\n" {
		t.Errorf("printed %q, %q", out, errOut)
	}
}

func TestBackupsSayWhyTheirLogStopped(t *testing.T) {
	b := nightly()
	b.Status.Continuous = &api.ContinuousStatus{Recording: true, NewestDate: &metav1.Time{Time: now.Add(-time.Hour)}}
	b.Status.RestoreTest = &api.RestoreTestStatus{Result: api.RestoreTestFailed, Reason: "it is damaged"}
	_, out, _ := newWorld(t, b).run("backups", "orders")
	contains(t, out, "The log of changes of nightly does not continue: the backup operator has reported nothing since 2026-11-22T11:00:00Z: check that it runs\n",
		"The last restore test of nightly did not pass: it is damaged\n")
}
