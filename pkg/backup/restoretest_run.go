// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/kubeerror"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

const (
	// testPoll is the time between two looks at an EtcdRestore.
	testPoll = 2 * time.Second
	// testCleaning bounds the removal of what a test has made.
	testCleaning = time.Minute
)

var (
	// errBad is that of a backup that is not good.
	errBad = errors.New("the backup is not good")
	// errTestTime ends a test.
	errTestTime = errors.New("the time for the test is up")
	// errGoing is that of something whose deletion Kubernetes has accepted, and not yet finished.
	errGoing = errors.New("is still there")
	// errForeign is that of an object that no test has made.
	errForeign = errors.New("belongs to something else: rename it, the test needs this name")
)

// restoreTest is one test of a backup. It restores the backup as a user would, so that it
// proves the whole way back.
type restoreTest struct {
	cfg    *Config
	log    *logrus.Entry
	obj    *api.EtcdBackup  // nobody changes it
	status api.BackupStatus // at the beginning
	began  time.Time
	point  point
	// abandoned is true for a test whose operator has ended: only its remains are removed.
	abandoned bool
	// turn ends its turn among all tests; nil: it has none yet.
	turn func()

	// waiting is what the test waits for.
	waiting atomic.Pointer[string]
}

func (t *restoreTest) waitFor(what string) { t.waiting.Store(&what) }

// waitsFor may be called by any goroutine.
func (t *restoreTest) waitsFor() string {
	if what := t.waiting.Load(); what != nil {
		return *what
	}
	return "its turn: other tests run"
}

func (t *restoreTest) run(ctx context.Context) testResult {
	r := testResult{result: api.RestoreTestPassed, key: t.status.Key, point: t.point, began: t.began}
	var err error
	if t.turn == nil {
		t.turn, err = t.cfg.Tests.take(ctx)
		if err == nil && t.cfg.Clock.Since(t.began) >= testLook {
			// The retention may have deleted what was there when it began to wait.
			return testResult{turn: t.turn}
		}
	}
	if err == nil {
		defer t.turn()
		err = t.restoreAndLook(ctx, &r)
	}
	r.took = t.cfg.Clock.Since(t.began)
	switch {
	case ctx.Err() != nil:
		r.stopped = true
	case errors.Is(err, errBad):
		r.result, r.reason = api.RestoreTestFailed, reasonOf(err)
	case err != nil:
		r.result, r.reason = api.RestoreTestNotDone, reasonOf(err)
	}
	return r
}

// restoreAndLook leaves nothing behind, unless Kubernetes does not answer or takes long: then the next
// test begins with that, or Kubernetes removes it with the EtcdBackup. What Kubernetes is about to
// remove says nothing of the backup, and changes no result.
func (t *restoreTest) restoreAndLook(ctx context.Context, r *testResult) error {
	limited, cancel := context.WithTimeoutCause(ctx, t.obj.Spec.RestoreTest.Timeout(), errTestTime)
	defer cancel()
	if err := t.clean(limited); err != nil {
		return fmt.Errorf("remove what an earlier test has left: %w", err)
	}
	err := t.restore(limited, r)
	if err == nil {
		err = t.examine(limited, r)
	}
	if err != nil && errors.Is(context.Cause(limited), errTestTime) {
		err = fmt.Errorf("%w after %s (spec.restoreTest.timeoutInSecond); it waited for: %s", errTestTime, t.obj.Spec.RestoreTest.Timeout(), t.waitsFor())
	}
	cleaning, stop := context.WithTimeout(context.WithoutCancel(ctx), testCleaning)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errEdited) {
		cleaning, stop = context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout) // the next operator removes it
	}
	defer stop()
	if left := t.clean(cleaning); left != nil {
		t.log.WithError(left).Warn("the test of a backup left something behind: the next one removes it, or waits until it is gone")
		if err == nil && !errors.Is(left, errGoing) {
			err = fmt.Errorf("remove what the test has made: %w", left)
		}
	}
	return err
}

// cleanUp removes what a test has made whose operator has ended.
func (t *restoreTest) cleanUp(ctx context.Context) testResult {
	r := testResult{result: api.RestoreTestNotDone, reason: "the operator ended during the test", key: t.status.RestoreTest.Key, began: t.began, cleaned: true}
	cleaning, stop := context.WithTimeout(ctx, testCleaning)
	defer stop()
	left, err := watchdog.Recover(t.log, func() error { return t.clean(cleaning) })
	if err = errors.Join(left, err); err != nil {
		t.log.WithError(err).Warn("a test of a backup, whose operator ended, left something behind")
		r.reason = reasonOf(fmt.Errorf("%s, and left something behind: %w", r.reason, err))
	}
	r.took, r.stopped = t.cfg.Clock.Since(t.began), ctx.Err() != nil
	return r
}

// restore has the backup restored and waits until that has ended.
func (t *restoreTest) restore(ctx context.Context, r *testResult) error {
	want, err := t.etcdRestore(ctx)
	if err != nil {
		return err
	}
	restores := t.cfg.Etcd.EtcdV1beta2().EtcdRestores(want.Namespace)
	t.waitFor("the creation of the EtcdRestore " + want.Name)
	if _, err := restores.Create(ctx, want, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the EtcdRestore %s: %w", want.Name, granted(err, "create etcdrestores"))
	}
	for {
		live, err := restores.Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			err = fmt.Errorf("look at the EtcdRestore %s: %w", want.Name, granted(err, "get etcdrestores"))
			if !noAnswer(err) {
				return err
			}
			t.waitForAnswer(ctx, err)
		} else if ended, err := t.restored(live, r); ended || err != nil {
			return err
		}
		if err := t.pause(ctx); err != nil {
			return err
		}
	}
}

// restored reports whether the restore of the backup has ended.
func (t *restoreTest) restored(live *api.EtcdRestore, r *testResult) (bool, error) {
	switch st := &live.Status; {
	case strings.Contains(st.Reason, rewind.ErrHash.Error()): // the first member refuses, again and again
		return false, fmt.Errorf("%w: the restore failed: %s", errBad, st.Reason)
	case st.Phase == api.RestorePhaseSucceeded:
		if st.Backup != nil {
			r.from = st.Backup.Key
		}
		return true, nil
	case st.Phase == api.RestorePhaseFailed:
		return false, fmt.Errorf("%w: the restore failed: %s", errBad, st.Reason)
	case st.Phase == api.RestorePhaseInvalid:
		return false, fmt.Errorf("the restore operator refuses the EtcdRestore of the test: %s", st.Reason)
	case st.Phase == api.RestorePhaseNone:
		t.waitFor("a restore operator that manages the EtcdRestore " + live.Name + ": install one for this namespace")
	default:
		t.waitFor(fmt.Sprintf("the EtcdRestore %s, phase %s: %s", live.Name, st.Phase, st.Reason))
	}
	return false, nil
}

// owners lets Kubernetes delete the EtcdRestore with the EtcdBackup, if no operator does. The
// EtcdCluster belongs to the EtcdRestore.
func (t *restoreTest) owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdBackupResourceKind, Name: t.obj.Name, UID: t.obj.UID,
	}}
}

// noAnswer reports whether an error says nothing about what was asked for: there was no answer, or the
// API server or its etcd is busy or restarts. Between two looks, an object may have changed.
func noAnswer(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || kubeerror.IsBusy(err) || apierrors.IsConflict(err)
}

// waitForAnswer keeps what the test waited for before, if it was its end that ended the request.
func (t *restoreTest) waitForAnswer(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.waitFor("an answer of the API server: " + err.Error())
	}
}

func (t *restoreTest) pause(ctx context.Context) error {
	timer := t.cfg.Clock.NewTimer(testPoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// examine looks into the restored cluster.
func (t *restoreTest) examine(ctx context.Context, r *testResult) error {
	copied := t.obj.DeepCopy()
	copied.Spec = api.BackupSpec{EtcdCluster: &api.EtcdClusterRef{Name: testName(t.obj)}}
	src, err := (&attempt{cfg: t.cfg, log: t.log, obj: copied}).source(ctx)
	if err != nil {
		return err
	}
	t.waitFor("an answer of the restored etcd")
	restored, err := t.cfg.OpenRestored(src)
	if err != nil {
		return err
	}
	defer restored.Close()
	if t.point.revision > 0 {
		err = t.examinePoint(ctx, restored, r)
	} else {
		err = t.examineBackup(ctx, restored, r)
	}
	if err != nil {
		return err
	}
	check := t.obj.Spec.RestoreTest.Check
	if check == nil {
		return nil
	}
	value, exists, err := restored.Value(ctx, check.Key, t.point.revision)
	switch {
	case err != nil:
		return fmt.Errorf("examine the restored etcd: %w", err)
	case !exists:
		return fmt.Errorf("%w: the restored etcd lacks the key %q of spec.restoreTest.check", errBad, check.Key)
	case check.Value != nil && value != *check.Value:
		return fmt.Errorf("%w: in the restored etcd, the key %q has another value than spec.restoreTest.check states", errBad, check.Key)
	}
	return nil
}

// examineBackup looks whether the restored etcd has the revision of the backup.
func (t *restoreTest) examineBackup(ctx context.Context, restored Restored, r *testResult) error {
	contents, err := restored.Contents(ctx, 0)
	switch {
	case err != nil:
		return fmt.Errorf("examine the restored etcd: %w", err)
	case contents.Revision < t.status.EtcdRevision:
		return fmt.Errorf("%w: the restored etcd has revision %d, and the backup was made of revision %d", errBad, contents.Revision, t.status.EtcdRevision)
	}
	r.revision, r.keys = contents.Revision, contents.Keys
	return nil
}

// examinePoint looks whether the test has restored its point. Leases began again, and the end of one
// raises the revision. So what counts is the oldest revision that etcd has: a restore compacts the history up to it.
func (t *restoreTest) examinePoint(ctx context.Context, restored Restored, r *testResult) error {
	at := t.point.revision
	contents, err := restored.Contents(ctx, at)
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev), errors.Is(err, rpctypes.ErrCompacted):
		return fmt.Errorf("%w: the restored etcd does not have revision %d, which the test restored: %w", errBad, at, err)
	case err != nil:
		return fmt.Errorf("examine the restored etcd: %w", err)
	}
	if at > 1 && contents.Revision > at {
		_, err := restored.Contents(ctx, at-1)
		switch {
		case err == nil:
			return fmt.Errorf("%w: the restored etcd has revision %d and the history before, and the test restored revision %d", errBad, contents.Revision, at)
		case !errors.Is(err, rpctypes.ErrCompacted):
			return fmt.Errorf("examine the restored etcd: %w", err)
		}
	}
	r.revision, r.keys = at, contents.Keys
	return nil
}

// clean removes what tests of this EtcdBackup have made, and waits until it is gone. Its error is
// errGoing if all that it can do is done.
func (t *restoreTest) clean(ctx context.Context) error {
	name, going := testName(t.obj), ""
	for {
		left, err := t.cleanOnce(ctx, name)
		switch {
		case err == nil && left == "":
			return nil
		case err == nil:
			going = left
			t.waitFor(going + " to go")
		case errors.Is(err, errForeign) || !noAnswer(err):
			return err
		default:
			t.waitForAnswer(ctx, err)
		}
		ended := t.pause(ctx)
		switch {
		case ended != nil && going != "":
			return fmt.Errorf("%s %w: %w", going, errGoing, ended)
		case ended != nil:
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// cleanOnce returns what is still there, and about to go; "" if nothing is.
func (t *restoreTest) cleanOnce(ctx context.Context, name string) (left string, err error) {
	client := t.cfg.Etcd.EtcdV1beta2()
	restore, err := client.EtcdRestores(t.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return "", fmt.Errorf("look at the EtcdRestore %s: %w", name, granted(err, "get etcdrestores"))
	case err == nil && restore.Labels[api.RestoreTestLabel] != string(t.obj.UID):
		return "", fmt.Errorf("the EtcdRestore %s %w", name, errForeign)
	case err == nil && restore.DeletionTimestamp == nil:
		uid := metav1.NewUIDPreconditions(string(restore.UID))
		if err := client.EtcdRestores(t.obj.Namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: uid}); err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("delete the EtcdRestore %s: %w", name, granted(err, "delete etcdrestores"))
		}
		left = "the EtcdRestore " + name
	case err == nil:
		left = "the EtcdRestore " + name
	}
	if left != "" {
		return left, nil // it would create the EtcdCluster again
	}
	// Kubernetes deletes the EtcdCluster after its owner, the EtcdRestore.
	cluster, err := client.EtcdClusters(t.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look at the EtcdCluster %s: %w", name, granted(err, "get etcdclusters"))
	case cluster.Labels[api.RestoreTestLabel] != string(t.obj.UID):
		return "", fmt.Errorf("the EtcdCluster %s %w", name, errForeign)
	}
	return "the EtcdCluster " + name, nil
}

// Restored is an etcd that a test looks into.
type Restored interface {
	// Contents counts the keys at a revision; 0: at the newest one.
	Contents(ctx context.Context, at int64) (etcd.Contents, error)
	Value(ctx context.Context, key string, at int64) (value string, exists bool, err error)
	Close()
}
