// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// persistentWorld returns a running cluster of three members on volumes. run makes passes for a
// while.
func persistentWorld(t *testing.T) (w *world, c *Cluster, run func(time.Duration)) {
	t.Helper()
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	obj.Status = runningStatus()
	clock := clocktesting.NewFakeClock(noon)
	w = newWorld(t, clock, obj)
	members := guarded{fakeMembers{}, &etcd.Credentials{}, &etcd.Credentials{}, new(*Cluster)}
	members.join(t, w, "a", "b", "c")
	for name := range members.fakeMembers {
		claim := manifest.BuildVolume(obj, name)
		claim.Status.Phase = corev1.ClaimBound
		if _, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		built, err := manifest.BuildPod(obj, manifest.MemberPod{Name: name, Version: "3.6.16", Volume: true, Rejoins: true}, manifest.CertForms{}, operatorImage)
		if err != nil {
			t.Fatal(err)
		}
		w.editPod(name, func(pod *corev1.Pod) { pod.Spec.Volumes = built.Spec.Volumes })
	}
	w.cfg.Members = func() Members { return members }
	members.SetCredentials(etcd.Credentials{})
	c = w.cluster(obj)
	*members.of = c
	return w, c, func(d time.Duration) {
		for end := clock.Now().Add(d); clock.Now().Before(end); {
			w.watch()
			clock.Step(max(c.reconcile(t.Context()), 10*time.Millisecond))
		}
	}
}

// undo makes admission drop what a patch of such objects changes, if the patch contains the text.
func (w *world) undo(resource, text string) {
	w.kube.PrependReactor("patch", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), text) {
			return false, nil, nil
		}
		stays, err := w.kube.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		return true, stays, err
	})
}

// A refusal that lasts is one state. The status changed twice a minute, whenever the operator
// tried again.
func TestARefusalThatLastsIsWrittenOnce(t *testing.T) {
	forbidden := func(string) error {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "a", errors.New("only dynamically provisioned pvc can be resized"))
	}
	grow := func(obj *api.EtcdCluster) {
		obj.Spec.Pod.PersistentVolumeClaimSpec.Resources = claimOf("2Gi").Resources
	}
	for name, tt := range map[string]struct {
		prepare func(*world)
		edit    func(*api.EtcdCluster)
		stalled string
		says    string
	}{
		"an expansion": {func(w *world) {
			w.kube.PrependReactor("patch", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
				patch := string(a.(clienttesting.PatchAction).GetPatch())
				return strings.Contains(patch, "storage"), nil, forbidden(patch)
			})
		}, grow, "VolumeExpansionRefused", "can't grow from 1Gi to 2Gi"},
		"an expansion that admission undoes": {
			func(w *world) { w.undo("persistentvolumeclaims", "storage") },
			grow, "VolumeExpansionRefused", "admission keeps volume a at 1Gi, although the operator asked for 2Gi",
		},
		"an update": {func(w *world) {
			w.kube.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("violates PodSecurity restricted"))
			})
		}, func(obj *api.EtcdCluster) {
			obj.Spec.Pod.EtcdEnv = []corev1.EnvVar{{Name: "ETCD_LOG_LEVEL", Value: "debug"}}
		}, "UpdateRefused", "violates PodSecurity"},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, run := persistentWorld(t)
			run(time.Minute)
			tt.prepare(w)
			c.take(w.edit(func(obj *api.EtcdCluster) {
				tt.edit(obj)
				obj.Generation++
			}))
			run(time.Minute)
			written, patched, tried := w.count("update", "etcdclusters"), w.count("patch", "persistentvolumeclaims"), w.count("create", "pods")
			run(10 * time.Minute)
			st := w.etcdCluster().Status
			if stalled := st.Condition(api.ConditionStalled); stalled.Reason != tt.stalled || !strings.Contains(stalled.Message, tt.says) {
				t.Errorf("Stalled is %+v", stalled)
			}
			if n := w.count("update", "etcdclusters") - written; n > 1 {
				t.Errorf("the status was written %d times in ten minutes", n)
			}
			patched, tried = w.count("patch", "persistentvolumeclaims")-patched, w.count("create", "pods")-tried
			if patched+tried < 5 || patched > 3*15 || tried > 15 {
				t.Errorf("%d attempts at the volumes and %d at a pod in ten minutes", patched, tried)
			}
		})
	}
}

// A client Service or a PodDisruptionBudget that can't exist is not what the spec says. The rest
// of the cluster goes its way.
func TestARefusedServiceOrBudgetIsNotAsSpecified(t *testing.T) {
	forbid := func(w *world, resource, name string) {
		w.kube.PrependReactor("create", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			made := a.(clienttesting.CreateAction).GetObject().(metav1.Object).GetName()
			return made == name, nil, apierrors.NewForbidden(corev1.Resource(resource), name, errors.New("exceeded quota: q"))
		})
	}
	others := metav1.ObjectMeta{Namespace: "ns", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "x", UID: "x", Controller: new(true)}}}
	for name, tt := range map[string]struct {
		prepare       func(*testing.T, *world)
		reason, says  string
		kind, removed string
	}{
		"a quota refuses the Service": {func(_ *testing.T, w *world) { forbid(w, "services", "c-client") }, "ServiceRefused", "exceeded quota: q", "", ""},
		"somebody else's Service": {func(_ *testing.T, w *world) {
			others.Name = "c-client"
			w.makeService(&corev1.Service{ObjectMeta: others})
		}, "ServiceRefused", "service c-client belongs to something else: delete it if nothing needs it, or set spec.service.name", "services", "c-client"},
		"a policy refuses the budget": {func(_ *testing.T, w *world) { forbid(w, "poddisruptionbudgets", "c") }, "BudgetRefused", "exceeded quota: q", "", ""},
		"somebody else's budget": {func(t *testing.T, w *world) {
			others.Name = "c"
			if _, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: others}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "BudgetRefused", "PodDisruptionBudget c belongs to something else: delete it", "poddisruptionbudgets", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, run := persistentWorld(t)
			tt.prepare(t, w)
			run(2 * time.Minute)
			written := w.count("update", "etcdclusters")
			run(10 * time.Minute)
			st := w.etcdCluster().Status
			if stalled := st.Condition(api.ConditionStalled); stalled.Reason != tt.reason || !strings.Contains(st.Reason, tt.says) || conditionIsTrue(&st, api.ConditionReady) {
				t.Errorf("Stalled is %+v, reason %q", stalled, st.Reason)
			}
			if n := w.count("update", "etcdclusters") - written; n > 1 {
				t.Errorf("the status was written %d times in ten minutes", n)
			}
			if tt.removed == "" {
				return
			}
			gvr := corev1.SchemeGroupVersion.WithResource(tt.kind)
			if tt.kind == "poddisruptionbudgets" {
				gvr = policyv1.SchemeGroupVersion.WithResource(tt.kind)
			}
			if err := w.kube.Tracker().Delete(gvr, "ns", tt.removed); err != nil {
				t.Fatal(err)
			}
			run(takenPause + 2*Period)
			if st := w.etcdCluster().Status; !conditionIsTrue(&st, api.ConditionReady) || st.Reason != "" {
				t.Errorf("the name is free: Ready is %+v, reason %q", st.Condition(api.ConditionReady), st.Reason)
			}
		})
	}
}

// An expansion and an update that the API server accepts at last leave no refusal.
func TestARefusalEndsWithTheNextAttempt(t *testing.T) {
	w, c, run := persistentWorld(t)
	run(time.Minute)
	refuses := true
	w.kube.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "a", errors.New("not now"))
	})
	c.take(w.edit(func(obj *api.EtcdCluster) {
		obj.Spec.Pod.PersistentVolumeClaimSpec.Resources = claimOf("2Gi").Resources
		obj.Generation++
	}))
	run(3 * time.Minute)
	refuses = false
	run(specRefusedPause + Period)
	if st := w.etcdCluster().Status; !conditionIsTrue(&st, api.ConditionReady) {
		t.Errorf("Ready is %+v", st.Condition(api.ConditionReady))
	}
}

// Admission may drop what the operator notes on its objects. The operator tries again once a
// minute, and the status says so.
func TestANoteThatAdmissionUndoesIsToldAndRare(t *testing.T) {
	for name, tt := range map[string]struct {
		resource, annotation string
	}{
		"of a pod":    {"pods", manifest.StartedAnnotation},
		"of a volume": {"persistentvolumeclaims", manifest.VersionAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, run := persistentWorld(t)
			w.undo(tt.resource, tt.annotation)
			run(2 * time.Minute)
			written, patched := w.count("update", "etcdclusters"), w.count("patch", tt.resource)
			run(10 * time.Minute)
			st := w.etcdCluster().Status
			if stalled := st.Condition(api.ConditionStalled); stalled.Reason != "WriteUndone" || !strings.Contains(st.Reason, tt.annotation) || conditionIsTrue(&st, api.ConditionReady) {
				t.Errorf("Stalled is %+v, reason %q", stalled, st.Reason)
			}
			if n := w.count("patch", tt.resource) - patched; n < 3*5 || n > 3*15 {
				t.Errorf("%d patches of three objects in ten minutes", n)
			}
			if n := w.count("update", "etcdclusters") - written; n > 1 {
				t.Errorf("the status was written %d times in ten minutes", n)
			}
		})
	}
}

// A namespace may refuse deletions. The rest of the plan goes its way, and the status says so, once.
func TestARefusedDeletionIsToldOnceAndStarvesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		resource string
		prepare  func(*testing.T, *world)
		least    int // attempts in ten minutes
	}{
		"of volumes": {"persistentvolumeclaims", func(t *testing.T, w *world) {
			for _, name := range []string{"v", "w", "x", "y", "z"} {
				made, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), manifest.BuildVolume(w.etcdCluster(), name), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				made.UID = types.UID(name)
				if err := w.volumes.Add(made); err != nil {
					t.Fatal(err)
				}
			}
		}, 5 * 30},
		"of a pod": {"pods", func(t *testing.T, w *world) {
			former := memberPod(t, w.etcdCluster(), "x")
			former.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.EtcdContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Started: new(true)}}
			w.makePod(former)
		}, 30},
		"of a pod that is not needed": {"pods", func(t *testing.T, w *world) { w.makePod(memberPod(t, w.etcdCluster(), "x")) }, 30},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, run := persistentWorld(t)
			run(time.Minute)
			tt.prepare(t, w)
			w.kube.PrependReactor("delete", tt.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource(tt.resource), "x", errors.New("no deletions here"))
			})
			run(2 * time.Minute)
			c.take(w.edit(func(obj *api.EtcdCluster) {
				obj.Spec.Pod.PersistentVolumeClaimSpec.Resources = claimOf("2Gi").Resources
				obj.Generation++
			}))
			run(time.Minute)
			if n := w.count("patch", "persistentvolumeclaims"); n < 3 {
				t.Errorf("%d volumes have grown", n)
			}
			written, tried := w.count("update", "etcdclusters"), w.count("delete", tt.resource)
			run(10 * time.Minute)
			st := w.etcdCluster().Status
			if stalled := st.Condition(api.ConditionStalled); stalled.Reason != "WriteUndone" || !strings.Contains(st.Reason, "no deletions here") || conditionIsTrue(&st, api.ConditionReady) {
				t.Errorf("Stalled is %+v, reason %q", stalled, st.Reason)
			}
			if n := w.count("update", "etcdclusters") - written; n > 1 {
				t.Errorf("the status was written %d times in ten minutes", n)
			}
			if n := w.count("delete", tt.resource) - tried; n < tt.least || n > 2*tt.least+5 {
				t.Errorf("%d attempts in ten minutes", n)
			}
		})
	}
}

// A registry policy may refuse another image for a pod. Another member may give the quorum back.
func TestARefusedImageIsPutOff(t *testing.T) {
	w, c, run := persistentWorld(t)
	run(time.Minute)
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "b", errors.New("not from this registry"))
	})
	w.watch()
	pod, err := w.cfg.Pods.Pods("ns").Get("b")
	if err != nil {
		t.Fatal(err)
	}
	err = c.apply(t.Context(), plan.SetVersion{Pod: "b", UID: pod.UID, From: "3.6.99", To: "3.6.16"})
	o, lookErr := c.observe(t.Context())
	if !apierrors.IsForbidden(err) || lookErr != nil || !o.Pod("b").ImagePutOff || o.Pod("a").ImagePutOff || !strings.Contains(imageRefusal(o).String(), "not from this registry") {
		t.Errorf("error %v; observation %v, refused: %q", err, lookErr, o.ImageRefused)
	}
}

// A write that Kubernetes refuses again and again is no progress. What the operator waits for stays in
// the status.
func TestARefusedWriteDoesNotEndAStandstill(t *testing.T) {
	for name, tt := range map[string]struct{ verb, text string }{
		"an expansion": {"patch", "storage"},
		"a deletion":   {"delete", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, run := persistentWorld(t)
			run(time.Minute)
			left := manifest.BuildVolume(w.etcdCluster(), "x")
			left.UID = "x"
			if tt.verb == "delete" {
				if err := w.volumes.Add(left); err != nil {
					t.Fatal(err)
				}
			}
			tried := 0
			w.kube.PrependReactor(tt.verb, "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if patch, ok := a.(clienttesting.PatchAction); ok && !strings.Contains(string(patch.GetPatch()), tt.text) {
					return false, nil, nil
				}
				tried++
				return true, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "x", errors.New("not here"))
			})
			if tt.verb == "patch" {
				c.take(w.edit(func(obj *api.EtcdCluster) {
					obj.Spec.Pod.PersistentVolumeClaimSpec.Resources = claimOf("2Gi").Resources
					obj.Generation++
				}))
			}
			w.cfg.Members().(guarded).fakeMembers["c"].refusal = errors.New("not heard of")
			run(2 * time.Minute)
			written := w.count("update", "etcdclusters")
			for range 10 {
				run(30 * time.Second)
				if st := w.etcdCluster().Status; !strings.Contains(st.Reason, "the operator has been waiting") {
					t.Fatalf("the reason is %q", st.Reason)
				}
			}
			if n := w.count("update", "etcdclusters") - written; n > 2 || tried < 5 {
				t.Errorf("the status was written %d times in five minutes, after %d attempts", n, tried)
			}
		})
	}
}
