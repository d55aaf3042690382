// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func in(phase api.RestorePhase, w *world) func() bool {
	return func() bool { return w.restore().Status.Phase == phase }
}

func TestAClusterComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(3)
		service := w.get("services", "c-client").GetUID()
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
		w.live(5 * time.Second)
		c, r := w.cluster(), w.restore()
		if c.UID == old || c.Status.ReadyMembers != 3 || c.Labels["team"] != "a" || c.Annotations["note"] != "keep" || c.Spec.Version != "3.6.16" {
			t.Errorf("the cluster is %+v", c)
		}
		if _, there := c.Annotations[api.RestoreAnnotation]; there {
			t.Error("the annotation is still there")
		}
		if len(r.Finalizers) > 0 || r.Annotations[api.RestoredAnnotation] == "" || !r.Status.Succeeded || r.Status.ReplacedUID != old || r.Status.ClusterUID != c.UID {
			t.Errorf("the EtcdRestore is %+v", r)
		}
		if w.get("services", "c-client").GetUID() != service {
			t.Error("the client Service was recreated: its address has changed")
		}
		if w.get("secrets", "c-restore-token") != nil {
			t.Error("the token is still there")
		}
		if n := len(w.all("persistentvolumeclaims")); n != 3 {
			t.Errorf("%d volumes", n)
		}
		if len(w.offers) > 0 {
			t.Error("the backup is still served")
		}
	})
}

func TestNothingIsTouchedBeforeTheBackupIsGood(t *testing.T) {
	for name, tc := range map[string]struct {
		find  func() (selection.Verified, []string, error)
		edit  func(*api.EtcdRestore, *api.EtcdCluster)
		phase api.RestorePhase
	}{
		"damaged": {find: func() (selection.Verified, []string, error) {
			return selection.Verified{}, nil, fmt.Errorf("%w: it ends early", selection.ErrDamaged)
		}, phase: api.RestorePhaseFailed},
		"missing": {find: func() (selection.Verified, []string, error) {
			return selection.Verified{}, nil, store.ErrNotFound
		}, phase: api.RestorePhaseRetrying},
		"of a newer etcd": {find: func() (selection.Verified, []string, error) {
			b := backup(1)
			b.EtcdVersion = "3.7.0"
			return b, nil, nil
		}, phase: api.RestorePhaseFailed},
		"paused":          {edit: func(_ *api.EtcdRestore, c *api.EtcdCluster) { c.Spec.Paused = true }, phase: api.RestorePhaseRetrying},
		"with a template": {edit: func(r *api.EtcdRestore, _ *api.EtcdCluster) { r.Spec.ClusterTemplate = template() }, phase: api.RestorePhaseInvalid},
		"of another name": {edit: func(r *api.EtcdRestore, _ *api.EtcdCluster) { r.Spec.EtcdCluster.Name = "d" }, phase: api.RestorePhaseInvalid},
		"with a bump that the version lacks": {edit: func(r *api.EtcdRestore, c *api.EtcdCluster) {
			r.Spec.BumpRevision, c.Spec.Version = 5, "3.5.9"
		}, phase: api.RestorePhaseInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(1)
				r, c := testRestore(), w.cluster()
				if tc.edit != nil {
					tc.edit(r, c)
					u := w.get("etcdclusters", "c").DeepCopy()
					u.Object["spec"] = untyped("etcdclusters", c).Object["spec"]
					w.put("etcdclusters", u)
				}
				if tc.find != nil {
					w.find = tc.find
				}
				w.add("etcdrestores", r)
				stop := w.run()
				defer stop()
				w.await("the verdict", time.Minute, in(tc.phase, w))
				w.live(10 * time.Minute)
				if c := w.cluster(); c == nil || c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers) > 0 || len(w.all("pods")) != 1 {
					t.Error("something was touched")
				}
				if got := w.restore(); got.Status.Phase != tc.phase && got.Status.Phase != api.RestorePhaseVerifying || got.Status.Reason == "" || len(got.Finalizers) > 0 {
					t.Errorf("status %+v", got.Status)
				}
				// An edit is followed.
				w.change(func() {
					w.find = func() (selection.Verified, []string, error) { return backup(2), nil, nil }
				})
				w.edit(func(r *api.EtcdRestore) {
					r.Spec = testRestore().Spec
					r.Spec.S3.Endpoint = "https://another"
				})
				w.change(func() {
					u := w.get("etcdclusters", "c").DeepCopy()
					u.Object["spec"] = untyped("etcdclusters", testCluster(1)).Object["spec"]
					w.put("etcdclusters", u)
				})
				w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
			})
		})
	}
}

func template() *api.ClusterTemplate {
	t := &api.ClusterTemplate{Metadata: api.TemplateMetadata{Labels: map[string]string{"from": "template"}}}
	t.Spec.Raw = []byte(`{"size":1,"version":"3.6.16"}`)
	return t
}

func TestAClusterThatIsNotThereIsMadeFromATemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := testRestore()
		w.add("etcdrestores", r)
		stop := w.run()
		defer stop()
		w.await("what is missing", time.Minute, in(api.RestorePhaseRetrying, w))
		w.edit(func(r *api.EtcdRestore) { r.Spec.ClusterTemplate = template() })
		w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
		if c := w.cluster(); c.Labels["from"] != "template" || c.Status.RestoredFrom == nil {
			t.Errorf("%+v", c)
		}
	})
}

// The cluster of a test has to go even if no operator runs: Kubernetes deletes it with its owner.
func TestTheClusterOfATestBelongsToItsEtcdRestore(t *testing.T) {
	r := testRestore()
	r.UID, r.Spec.ClusterTemplate = "r", template()
	for _, label := range []string{"", "u"} {
		r.Labels = map[string]string{api.RestoreTestLabel: label}
		r.OwnerReferences = []metav1.OwnerReference{{Kind: api.EtcdBackupResourceKind, Name: "b", UID: "u"}}
		m, err := manifestFrom(r)
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.cluster("")
		if err != nil {
			t.Fatal(err)
		}
		owners := c.GetOwnerReferences()
		if test := label != ""; test != (len(owners) == 1) || test && (owners[0].UID != "r" || owners[0].Kind != api.EtcdRestoreResourceKind) {
			t.Errorf("label %q: owners %+v", label, owners)
		}
	}
}

func TestASucceededRestoreNeverActsAgain(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"its status is lost": func(w *world) { w.edit(func(r *api.EtcdRestore) { r.Status = api.RestoreStatus{} }) },
		"it comes back from a backup of Kubernetes": func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.remove("etcdrestores", "c")
			r := testRestore()
			r.Annotations = map[string]string{api.RestoredAnnotation: "2026-11-21T18:00:00Z"}
			w.add("etcdrestores", r)
		},
		"its spec is edited":     func(w *world) { w.edit(func(r *api.EtcdRestore) { r.Spec.BumpRevision = 7 }) },
		"its cluster is deleted": func(w *world) { w.mu.Lock(); defer w.mu.Unlock(); w.remove("etcdclusters", "c") },
		"it is that of v0.9.4": func(w *world) {
			w.edit(func(r *api.EtcdRestore) { r.Status = api.RestoreStatus{Succeeded: true}; r.Annotations = nil })
		},
		"v0.9.4 has given it up": func(w *world) {
			w.edit(func(r *api.EtcdRestore) { r.Status = api.RestoreStatus{Reason: "failed"}; r.Annotations = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(1)
				w.add("etcdrestores", testRestore())
				stop := w.run()
				w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
				w.live(10 * time.Second)
				stop()
				lose(w)
				w.live(10 * time.Second)
				var uid types.UID
				if c := w.cluster(); c != nil {
					uid = c.UID
				}
				stop = w.run()
				defer stop()
				w.live(10 * time.Minute)
				if c := w.cluster(); c == nil && uid != "" || c != nil && c.UID != uid {
					t.Error("the cluster is another one")
				}
				if w.restore().Status.Reason == "" && name != "its cluster is deleted" {
					t.Error("nothing explains why nothing is done")
				}
			})
		})
	}
}

func TestAPodWhoseNodeIsGoneIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(3)
		w.deadNode["c-2"] = true
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("success", 4*time.Minute, in(api.RestorePhaseSucceeded, w))
		if !w.Told("Pod c-2 of the old cluster") {
			t.Error("nobody learned of the pod that may still run")
		}
	})
}

func TestSomebodyElsesClusterInThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.etcdOperator = false
		r := testRestore()
		r.Spec.ClusterTemplate = template()
		w.add("etcdrestores", r)
		stop := w.run()
		defer stop()
		w.await("the EtcdCluster", time.Minute, in(api.RestorePhaseStarting, w))
		// It is recreated, by somebody who knows nothing of the backup.
		w.mu.Lock()
		w.remove("etcdclusters", "c")
		w.add("etcdclusters", testCluster(1))
		w.mu.Unlock()
		w.live(10 * time.Second)
		if c := w.cluster(); c == nil || c.Annotations[api.RestoreAnnotation] == "" {
			t.Error("an empty cluster may begin in place of the restored one")
		}
		// Once it serves, it may hold what nobody may lose.
		w.mu.Lock()
		w.remove("etcdclusters", "c")
		uid := w.add("etcdclusters", testCluster(1)).GetUID()
		c := w.cluster()
		c.Status.Phase = api.ClusterPhaseRunning
		w.setStatus(c)
		w.mu.Unlock()
		w.live(time.Minute)
		if c := w.cluster(); c == nil || c.UID != uid {
			t.Error("a cluster that serves was deleted")
		}
		if st := w.restore().Status; st.Phase != api.RestorePhaseCreating || st.Succeeded {
			t.Errorf("status %+v", st)
		}
		w.mu.Lock()
		w.remove("etcdclusters", "c")
		w.etcdOperator = true
		w.mu.Unlock()
		w.await("success", time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}

func TestAnEditBeforeTheFirstMemberServesIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.etcdOperator = false
		w.await("the EtcdCluster", time.Minute, in(api.RestorePhaseStarting, w))
		first := w.cluster().UID
		w.find = func() (selection.Verified, []string, error) {
			return selection.Verified{}, nil, errors.New("the store is down")
		}
		w.edit(func(r *api.EtcdRestore) { r.Spec.BumpRevision = 1000 })
		w.live(time.Minute)
		if len(w.offers) > 0 {
			t.Error("what nobody wants any more is still offered")
		}
		w.change(func() {
			w.find = func() (selection.Verified, []string, error) { return backup(2), nil, nil }
			w.etcdOperator = true
		})
		w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
		c, r := w.cluster(), w.restore()
		if c.UID == first || c.Status.RestoredFrom.SHA256 != digest(2) || r.Status.Backup.SHA256 != digest(2) || r.Status.ObservedGeneration != r.Generation {
			t.Errorf("the cluster began with %+v, status %+v", c.Status.RestoredFrom, r.Status)
		}
	})
}

func TestADeletedRestoreEnds(t *testing.T) {
	t.Run("before anything was touched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			old := w.running(1)
			w.find = func() (selection.Verified, []string, error) { return selection.Verified{}, nil, store.ErrNotFound }
			w.add("etcdrestores", testRestore())
			stop := w.run()
			defer stop()
			w.await("a failure", time.Minute, in(api.RestorePhaseRetrying, w))
			w.mu.Lock()
			w.remove("etcdrestores", "c")
			w.mu.Unlock()
			w.await("its end", time.Minute, func() bool { return w.restore() == nil })
			if w.cluster().UID != old {
				t.Error("the cluster was replaced")
			}
		})
	})
	t.Run("when the cluster is back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			old := w.running(2)
			w.add("etcdrestores", testRestore())
			stop := w.run()
			defer stop()
			w.await("the stop", time.Minute, func() bool { c := w.cluster(); return c == nil || c.UID != old || c.DeletionTimestamp != nil })
			w.mu.Lock()
			w.remove("etcdrestores", "c")
			w.mu.Unlock()
			w.await("its end", 2*time.Minute, func() bool { return w.restore() == nil })
			if c := w.cluster(); c == nil || c.Status.ReadyMembers != 2 || c.Status.RestoredFrom == nil {
				t.Errorf("the cluster is %+v", c)
			}
		})
	})
}

func TestVolumesOfTheOldCluster(t *testing.T) {
	for what, left := range map[api.OldVolumes]int{api.OldVolumesKeep: 4, api.OldVolumesDeleteWhenRestored: 2, api.OldVolumesDeleteFirst: 2} {
		t.Run(string(what), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(2)
				r := testRestore()
				r.Spec.OldVolumes = what
				w.add("etcdrestores", r)
				stop := w.run()
				defer stop()
				w.etcdOperator = false
				w.await("the new cluster", time.Minute, in(api.RestorePhaseStarting, w))
				before := 0
				for _, v := range w.all("persistentvolumeclaims") {
					if v.GetLabels()[replacedByLabel] != "" && metav1.GetControllerOf(v) == nil {
						before++
					}
				}
				if want := map[bool]int{true: 0, false: 2}[what == api.OldVolumesDeleteFirst]; before != want {
					t.Errorf("%d volumes are set aside, want %d", before, want)
				}
				w.etcdOperator = true
				w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
				if n := len(w.all("persistentvolumeclaims")); n != left {
					t.Errorf("%d volumes are left, want %d", n, left)
				}
			})
		})
	}
}

func TestANamespaceThatIsDeletedIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		operatorEnds bool
		latency      time.Duration
	}{
		"while the operator runs":                   {},
		"and the operator with it":                  {operatorEnds: true},
		"and the operator, and the requests linger": {operatorEnds: true, latency: 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(2)
				w.deadNode["c-1"] = true
				w.add("etcdrestores", testRestore())
				stop := w.run()
				defer stop()
				w.await("the stop", time.Minute, func() bool { c := w.cluster(); return c != nil && c.DeletionTimestamp != nil })
				w.mu.Lock()
				w.ending, w.latency = true, c.latency
				w.remove("etcdrestores", "c")
				w.mu.Unlock()
				if c.operatorEnds {
					stop()
				}
				w.live(3 * time.Second)
				if w.restore() != nil || w.cluster() != nil {
					t.Error("the namespace is kept by what nobody takes away any more")
				}
			})
		})
	}
}
