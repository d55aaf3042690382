// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func damagedBackup() (selection.Verified, []string, error) {
	return selection.Verified{}, nil, fmt.Errorf("%w: it ends early", selection.ErrDamaged)
}

func goodBackup() (selection.Verified, []string, error) { return backup(2), nil, nil }

// hinder has requests fail.
func (w *world) hinder(f func(verb, resource, name string, action clienttesting.Action) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// runUntil runs an operator that dies at a request, which does not succeed. Rehearsals do not count.
func (w *world) runUntil(verb, resource string) {
	w.t.Helper()
	reached := false
	w.hinder(func(v, r, _ string, action clienttesting.Action) error {
		if create, ok := action.(clienttesting.CreateActionImpl); ok && len(create.CreateOptions.DryRun) > 0 {
			return nil
		}
		if v == verb && r == resource {
			reached = true
			return errors.New("the operator dies")
		}
		return nil
	})
	stop := w.run()
	w.await("the request", time.Minute, func() bool { return reached })
	stop()
	w.hinder(func(string, string, string, clienttesting.Action) error { return nil })
}

// rewrite changes the spec of the EtcdCluster.
func (w *world) rewrite(change func(*api.EtcdCluster)) {
	c := w.cluster()
	change(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.get("etcdclusters", c.Name).DeepCopy()
	u.Object["spec"] = untyped("etcdclusters", c).Object["spec"]
	w.put("etcdclusters", u)
}

// Somebody has helped himself otherwise by then; what lives must not be replaced
// because something heals.
func TestARestoreThatWasGivenUpWaitsForAnEdit(t *testing.T) {
	ofV094 := func(r *api.EtcdRestore) { r.Status.Reason = "failed in v0.9.4" }
	for name, tc := range map[string]struct {
		restore func(*api.EtcdRestore)
		find    func() (selection.Verified, []string, error)
		happens func(w *world)
	}{
		"and the API server hiccups": {find: damagedBackup, happens: func(w *world) {
			once := true
			w.hinder(func(verb, resource, _ string, _ clienttesting.Action) error {
				if verb == "get" && resource == "etcdclusters" && once {
					once = false
					return errors.New("etcdserver: request timed out")
				}
				return nil
			})
		}},
		"and the cluster is paused for a while": {find: damagedBackup, happens: func(w *world) {
			w.rewrite(func(c *api.EtcdCluster) { c.Spec.Paused = true })
			w.live(5 * time.Minute)
			w.rewrite(func(c *api.EtcdCluster) { c.Spec.Paused = false })
		}},
		"and the cluster is recreated": {find: damagedBackup, happens: func(w *world) {
			w.mu.Lock()
			w.remove("etcdclusters", "c")
			w.mu.Unlock()
			w.live(5 * time.Minute)
			w.running(1)
		}},
		"by v0.9.4, and a right is granted": {restore: ofV094, happens: func(w *world) {
			w.hinder(func(verb, resource, name string, _ clienttesting.Action) error {
				if verb == "get" && resource == "secrets" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, nil)
				}
				return nil
			})
			w.live(5 * time.Minute)
			w.hinder(func(string, string, string, clienttesting.Action) error { return nil })
		}},
		"after a day": {find: func() (selection.Verified, []string, error) {
			return selection.Verified{}, nil, store.ErrNotFound
		}, happens: func(w *world) {
			w.edit(func(r *api.EtcdRestore) { r.Status.StartDate = notice.Timestamp(time.Now().Add(-patience)) })
			w.live(10 * time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(1)
				w.add("etcdrestores", testRestore())
				if tc.restore != nil {
					w.edit(tc.restore)
				}
				if tc.find != nil {
					w.find = tc.find
				}
				stop := w.run()
				defer stop()
				w.live(time.Minute)
				tc.happens(w)
				w.find = goodBackup
				lives := w.cluster().UID
				w.live(10 * time.Minute)
				if c := w.cluster(); c == nil || c.UID != lives || c.DeletionTimestamp != nil {
					t.Error("the cluster that lives was replaced")
				}
				if st := w.restore().Status; st.Phase != api.RestorePhaseFailed || st.Reason == "" {
					t.Errorf("status %+v", st)
				}
				w.edit(func(r *api.EtcdRestore) { r.Spec.S3.Endpoint = "https://another" })
				w.await("success after an edit", 5*time.Minute, in(api.RestorePhaseSucceeded, w))
			})
		})
	}
}

// The manifest of an earlier EtcdRestore, applied once more, brings its mark along.
func TestAForeignMarkIsNoSuccess(t *testing.T) {
	for _, phase := range []api.RestorePhase{api.RestorePhaseStopping, api.RestorePhaseStarting, api.RestorePhaseGrowing} {
		t.Run(string(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(3)
				switch phase {
				case api.RestorePhaseStopping:
					for _, p := range w.all("pods") {
						w.deadNode[p.GetName()] = true
					}
				case api.RestorePhaseStarting:
					w.etcdOperator = false
				}
				w.add("etcdrestores", testRestore())
				stop := w.run()
				defer stop()
				w.await("the phase", 5*time.Minute, in(phase, w))
				w.edit(func(r *api.EtcdRestore) {
					r.Annotations = map[string]string{api.RestoredAnnotation: "2026-01-01T00:00:00Z"}
				})
				if phase == api.RestorePhaseStarting {
					w.live(time.Minute)
					if st := w.restore().Status; st.Succeeded || len(w.all("persistentvolumeclaims")) < 3 {
						t.Errorf("volumes left: %d; status %+v", len(w.all("persistentvolumeclaims")), st)
					}
					w.etcdOperator = true
				}
				w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
				if c := w.cluster(); c == nil || c.UID == old || c.Status.ReadyMembers != 3 || c.Annotations[api.RestoreAnnotation] != "" {
					t.Errorf("cluster %+v", c)
				}
				if w.restore().Annotations[api.RestoredAnnotation] == "2026-01-01T00:00:00Z" {
					t.Error("the foreign mark stayed")
				}
			})
		})
	}
}

// What was read an hour ago may be gone: the store's own rules delete, and other
// backups replace.
func TestNothingIsReplacedByABackupThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(1)
		w.add("etcdrestores", testRestore())
		w.find = goodBackup
		rehearsals := 0
		w.hinder(func(_, resource, _ string, action clienttesting.Action) error {
			c, ok := action.(clienttesting.CreateActionImpl)
			if !ok || resource != "etcdclusters" || len(c.CreateOptions.DryRun) == 0 {
				return nil
			}
			if rehearsals++; rehearsals == 2 { // after the backup was read
				w.find = func() (selection.Verified, []string, error) {
					return selection.Verified{}, nil, store.ErrNotFound
				}
				return apierrors.NewInternalError(errors.New("the webhook is down"))
			}
			return nil
		})
		stop := w.run()
		defer stop()
		w.live(10 * time.Minute)
		if c := w.cluster(); c == nil || c.UID != old || c.DeletionTimestamp != nil || rehearsals < 3 {
			t.Errorf("after %d rehearsals: cluster %+v", rehearsals, c)
		}
	})
}

// The operator dies right after it has put on record what it is going to do.
func TestAnEditOfTheOldClusterIsNotLost(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*api.EtcdCluster)
		size int // that the cluster comes back with; 0: it is left alone
	}{
		"grown":                       {func(c *api.EtcdCluster) { c.Spec.Size = 3 }, 3},
		"paused":                      {func(c *api.EtcdCluster) { c.Spec.Paused = true }, 0},
		"another version, of no use":  {func(c *api.EtcdCluster) { c.Spec.Version = "3.5.35" }, 0},
		"another version, that's fit": {func(c *api.EtcdCluster) { c.Spec.Version = "3.6.12" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(1)
				w.add("etcdrestores", testRestore())
				alive := true
				w.hinder(func(verb, resource, _ string, _ clienttesting.Action) error {
					if alive && verb == "patch" && resource == "etcdclusters" {
						return errors.New("the operator dies")
					}
					return nil
				})
				stop := w.run()
				w.await("the record", time.Minute, func() bool { return committed(&w.restore().Status) })
				stop()
				w.rewrite(tc.edit)
				alive = false
				stop = w.run()
				defer stop()
				w.live(10 * time.Minute)
				c, st := w.cluster(), w.restore().Status
				if tc.size == 0 {
					if c == nil || c.UID != old || c.DeletionTimestamp != nil || st.Reason == "" {
						t.Errorf("it was not left alone: %+v, %+v", c, st)
					}
					return
				}
				if c.UID == old || c.Spec.Size != tc.size || c.Spec.Version != w.manifest(t).Version || !st.Succeeded {
					t.Errorf("spec %+v, status %+v", c.Spec, st)
				}
			})
		})
	}
}

// The restore put each of hundreds of edits into its status, and deleted nothing meanwhile.
func TestARestoreWaitsForAClusterThatIsEditedAgainAndAgain(t *testing.T) {
	for _, begins := range []string{"before the backup is on record", "after that"} {
		t.Run(begins, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(1)
				edits, writes := 0, 0
				w.add("etcdrestores", testRestore())
				w.hinder(func(verb, resource, _ string, _ clienttesting.Action) error {
					if verb != "get" && verb != "list" {
						writes++
					}
					if committed(&w.restore().Status) || begins != "after that" {
						if edits < 1000 && verb == "get" && resource == "etcdclusters" {
							edits++
							u := w.get("etcdclusters", "c").DeepCopy()
							u.SetLabels(map[string]string{"edited": strconv.Itoa(edits)})
							w.put("etcdclusters", u)
						}
					}
					return nil
				})
				stop := w.run()
				defer stop()
				w.live(time.Minute)
				if st := w.restore().Status; !strings.Contains(st.Reason, editedAgain) {
					t.Errorf("status %+v", st)
				}
				w.mu.Lock()
				writes = 0
				w.mu.Unlock()
				w.live(time.Minute)
				w.mu.Lock()
				n, at := writes, edits
				edits = 1000 // nobody edits it any more
				w.mu.Unlock()
				if c := w.cluster(); n > 20 || c == nil || c.UID != old {
					t.Errorf("%d writes in a minute", n)
				}
				w.live(3 * time.Minute)
				if c := w.cluster(); c == nil || c.UID == old || c.Labels["edited"] != strconv.Itoa(at) || !w.restore().Status.Succeeded {
					t.Errorf("it did not come back as it was after edit %d: %+v", at, c)
				}
			})
		})
	}
}

// manifest is the spec on record.
func (w *world) manifest(t *testing.T) *api.ClusterSpec {
	m, err := saved(&w.restore().Status)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := m.spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// All is lost again before the cluster was whole.
func TestASecondRoundKeepsTheServicesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(3)
		service := w.get("services", "c-client").GetUID()
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("growing", 2*time.Minute, in(api.RestorePhaseGrowing, w))
		first := w.cluster().UID
		w.mu.Lock()
		for _, p := range w.all("pods") {
			w.remove("pods", p.GetName())
		}
		w.mu.Unlock()
		w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
		if w.cluster().UID == first {
			t.Error("there was no second round")
		}
		if now := w.get("services", "c-client"); now == nil || now.GetUID() != service {
			t.Error("the client Service is another one")
		}
	})
}

// Somebody has put labels of his own in the place of ours.
func TestAVolumeIsKeptWhateverItsLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		w.mu.Lock()
		for _, p := range w.all("persistentvolumeclaims") {
			p = p.DeepCopy()
			p.SetLabels(map[string]string{"app": "mine"})
			w.put("persistentvolumeclaims", p)
		}
		w.mu.Unlock()
		r := testRestore()
		r.Spec.OldVolumes = api.OldVolumesKeep
		w.add("etcdrestores", r)
		stop := w.run()
		defer stop()
		w.await("success", 5*time.Minute, in(api.RestorePhaseSucceeded, w))
		kept := 0
		for _, p := range w.all("persistentvolumeclaims") {
			if p.GetLabels()[replacedByLabel] != "" {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("%d volumes of the old cluster are kept, want 1", kept)
		}
	})
}
