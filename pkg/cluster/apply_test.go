// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func (w *world) service(name string) *corev1.Service {
	w.t.Helper()
	svc, err := w.kube.CoreV1().Services("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return svc
}

func (w *world) makeService(svc *corev1.Service) *corev1.Service {
	w.t.Helper()
	made, err := w.kube.CoreV1().Services("ns").Create(w.t.Context(), svc, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func (w *world) makePod(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	made, err := w.kube.CoreV1().Pods("ns").Create(w.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// memberPod is a pod as the operator makes it.
func memberPod(t testing.TB, obj *api.EtcdCluster, name string) *corev1.Pod {
	t.Helper()
	pod, err := manifest.BuildPod(obj, manifest.MemberPod{Name: name, Version: obj.Spec.EffectiveVersion(), InitialCluster: etcd.InitialCluster{"http://" + name: name}}, manifest.CertForms{}, "operator")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestCreateServiceMakesBoth(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	for _, s := range []plan.Step{plan.CreateService{}, plan.CreateService{Client: true}} {
		if err := c.apply(t.Context(), s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, name := range []string{"c", "c-client"} {
		if svc := w.service(name); !metav1.IsControlledBy(svc, c.obj) {
			t.Errorf("service %s is not owned by the cluster: %v", name, svc.OwnerReferences)
		}
	}
}

func TestCreateServiceTakesOverThatOfAnEarlierCluster(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	earlier := testCluster()
	earlier.UID = "earlier"
	old := manifest.BuildClientService(earlier)
	old.Spec.ClusterIP, old.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
	old = w.makeService(old)

	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); err != nil {
		t.Fatal(err)
	}
	svc := w.service("c-client")
	if !metav1.IsControlledBy(svc, c.obj) || len(svc.OwnerReferences) != 1 {
		t.Errorf("owners %v, want the living cluster alone: the garbage collector takes the Service away with the earlier one", svc.OwnerReferences)
	}
	if svc.Spec.ClusterIP != "10.0.0.7" || svc.UID != old.UID {
		t.Errorf("ClusterIP %s, UID %s: it is another Service", svc.Spec.ClusterIP, svc.UID)
	}
}

// kubectl delete --cascade=orphan leaves the Services without an owner.
func TestCreateServiceTakesOverAnOrphan(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	orphan := manifest.BuildPeerService(testCluster())
	orphan.OwnerReferences = nil
	w.makeService(orphan)
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateService{}); err != nil {
		t.Fatal(err)
	}
	if svc := w.service("c"); !metav1.IsControlledBy(svc, c.obj) {
		t.Errorf("owners %v", svc.OwnerReferences)
	}
}

// A restore takes the Services from the cluster that it replaces. Its client Service has no
// endpoints until the new cluster takes it over.
func TestCreateServiceTakesOverThatOfARestore(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	kept := manifest.BuildClientService(testCluster())
	kept.OwnerReferences, kept.Spec.ClusterIP = nil, "10.0.0.7"
	kept.Annotations = map[string]string{"note": "of the user"}
	kept.Spec.Selector["etcd.database.coreos.com/restoring"] = "uid"
	w.makeService(kept)
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); err != nil {
		t.Fatal(err)
	}
	svc := w.service("c-client")
	if !metav1.IsControlledBy(svc, c.obj) || svc.Spec.ClusterIP != "10.0.0.7" || svc.Annotations["note"] == "" {
		t.Errorf("the Service is %+v", svc)
	}
	if want := manifest.BuildClientService(testCluster()).Spec.Selector; !maps.Equal(svc.Spec.Selector, want) {
		t.Errorf("the selector is %v, want %v", svc.Spec.Selector, want)
	}
}

func TestAForeignClientServiceIsPutUpWithForAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	w.makeService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "c-client", Namespace: "ns"}})
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); err == nil || !w.Told("Service Taken") {
		t.Errorf("error %v, events %q", err, w.Events())
	}
	for _, after := range []struct {
		time.Duration
		putUpWith bool
	}{{time.Second, true}, {time.Minute, false}} {
		clock.Step(after.Duration)
		o, err := c.observe(t.Context())
		if err != nil || o.ClientService.PutOff != after.putUpWith || o.ClientService.Ok() {
			t.Errorf("%v later: %+v, %v", after.Duration, o.ClientService, err)
		}
	}
}

func TestCreateServiceRefusesForeignOnes(t *testing.T) {
	another := testCluster()
	another.Name, another.UID = "another", "another"
	deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "c", UID: "x", Controller: new(true)}
	for name, owners := range map[string][]metav1.OwnerReference{
		"without an owner":                      nil,
		"of another EtcdCluster":                {manifest.OwnerOf(another)},
		"of a Deployment named so":              {deployment},
		"of an EtcdCluster of another operator": {{APIVersion: "operator.etcd.io/v1alpha1", Kind: "EtcdCluster", Name: "c", UID: "x", Controller: new(true)}},
	} {
		w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
		w.makeService(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "c-client", Namespace: "ns", OwnerReferences: owners},
			Spec:       corev1.ServiceSpec{ExternalName: "untouched"},
		})
		err := w.cluster(testCluster()).apply(t.Context(), plan.CreateService{Client: true})
		if err == nil || errors.Is(err, errCacheBehind) || !strings.Contains(err.Error(), "c-client") {
			t.Errorf("%s: error %v does not name the obstacle", name, err)
		}
		if svc := w.service("c-client"); svc.Spec.ExternalName != "untouched" || !reflect.DeepEqual(svc.OwnerReferences, owners) {
			t.Errorf("%s: it was changed to %v", name, svc)
		}
	}
}

func TestCreateServiceWaitsForTheCache(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateService{}); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context(), plan.CreateService{}); err != nil {
		t.Errorf("the Service that was just made: %v", err)
	}
	if o, err := c.observe(t.Context()); err != nil || plan.KeepPeerService(o) != nil {
		t.Errorf("it is created once more: %v", err)
	}

	deleting := manifest.BuildClientService(testCluster())
	deleting.OwnerReferences[0].UID = "earlier"
	now := metav1.NewTime(noon)
	deleting.DeletionTimestamp, deleting.Finalizers = &now, []string{"service.kubernetes.io/load-balancer-cleanup"}
	w.makeService(deleting)
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); !errors.Is(err, errBeingDeleted) {
		t.Errorf("an older Service that is being deleted: %v", err)
	}
	if o, err := c.observe(t.Context()); err != nil || plan.KeepClientService(o) != nil {
		t.Errorf("it holds up other rules: %v", err)
	}
}

// creating gives a cluster the record of its seed.
func creating(seed string) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) {
		obj.Status.Phase = api.ClusterPhaseCreating
		obj.Status.Members.Unready = []string{seed}
	}
}

func seedPod(name string) manifest.MemberPod {
	return manifest.MemberPod{Name: name, Version: "3.6.16", Seed: true, InitialCluster: etcd.InitialCluster{"http://" + name: name}}
}

func TestCreatePodsRemembersThem(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(w.edit(creating("a")))
	further := manifest.MemberPod{Name: "b", Version: "3.6.16", InitialCluster: etcd.InitialCluster{"http://b": "b"}}
	if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a"), further}}); err != nil {
		t.Fatal(err)
	}
	if len(c.podWrites) != 2 || c.podWrites["a"].pod.UID == "" {
		t.Errorf("remembered: %v", c.podWrites)
	}
	o := &plan.Observation{Names: manifest.NamesOf(c.obj), Now: noon}
	if err := c.observePods(t.Context(), o); err != nil || len(o.Pods) != 2 {
		t.Errorf("the next pass sees the pods %v, %v, though its cache does not", o.Pods, err)
	}
	if !w.Told("New member a added") || w.Told("New member b added") {
		t.Errorf("events %q: the seed is a member, a planned pod is not", w.Events())
	}
}

func TestCreatePodsGivesEachSeedAFreshToken(t *testing.T) {
	tokens := map[string]bool{}
	for range 2 {
		w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
		c := w.cluster(w.edit(creating("a")))
		if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a")}}); err != nil {
			t.Fatal(err)
		}
		for _, arg := range w.storedPods()[0].Spec.Containers[0].Command {
			if token, ok := strings.CutPrefix(arg, "--initial-cluster-token="); ok {
				tokens[token] = true
			}
		}
	}
	if len(tokens) != 2 || tokens[""] {
		t.Errorf("tokens %v", tokens)
	}
}

func TestCreatePodsAdoptsOneThatAnotherInstanceMade(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(w.edit(creating("a")))
	made := w.makePod(memberPod(t, c.obj, "a"))
	if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a")}}); err != nil {
		t.Fatal(err)
	}
	if got := c.podWrites["a"].pod; got == nil || got.UID != made.UID {
		t.Errorf("remembered %v, want the pod %s that exists", got, made.UID)
	}
}

func TestCreatePodsRefusesAForeignPodAndMakesTheOthers(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	foreign := memberPod(t, c.obj, "a")
	foreign.OwnerReferences = nil
	w.makePod(foreign)
	joiner := func(name string) manifest.MemberPod { return manifest.MemberPod{Name: name, Version: "3.6.16"} }
	err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{joiner("a"), joiner("b")}})
	if err == nil || !strings.Contains(err.Error(), "pod a exists") {
		t.Errorf("error %v does not name the pod", err)
	}
	if c.podWrites["a"].pod != nil || c.podWrites["b"].pod == nil {
		t.Errorf("remembered: %v, want b alone", c.podWrites)
	}
}

// An operator that takes over with an old cache must not start an empty cluster
// beside one that holds data.
func TestCreatePodsAsksBeforeASeedIsMade(t *testing.T) {
	for name, change := range map[string]func(*api.EtcdCluster){
		"it runs":              func(obj *api.EtcdCluster) { obj.Status.Phase = api.ClusterPhaseRunning },
		"it has another seed":  func(obj *api.EtcdCluster) { obj.Status.Members.Unready = []string{"b"} },
		"it has lost its data": func(obj *api.EtcdCluster) { obj.Status.Phase = api.ClusterPhaseFailed },
		"it was recreated":     func(obj *api.EtcdCluster) { obj.UID = "another" },
		"its record was wiped": func(obj *api.EtcdCluster) { obj.Status = api.ClusterStatus{} },
		"it runs with this pod": func(obj *api.EtcdCluster) {
			obj.Status.Phase, obj.Status.Members = api.ClusterPhaseRunning, api.MembersStatus{Ready: []string{"a"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			c := w.cluster(w.edit(creating("a")))
			w.edit(change)
			err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a"), {Name: "b", Version: "3.6.16"}}})
			if another := w.etcdCluster().UID != testUID; !another && !errors.Is(err, errSuperseded) || another && !apierrors.IsNotFound(err) {
				t.Errorf("error %v does not say that the cluster is another, or has come further", err)
			}
			if len(w.storedPods()) > 0 {
				t.Errorf("%d pods: an empty cluster is started", len(w.storedPods()))
			}
			if now := w.etcdCluster(); now.UID == testUID && !reflect.DeepEqual(c.status, now.Status) {
				t.Errorf("the next pass plans from %+v, and the API server has %+v", c.status, now.Status)
			}
		})
	}
}

func TestDeletePodNamesTheUID(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	pod := w.makePod(memberPod(t, c.obj, "a"))
	if err := c.apply(t.Context(), plan.DeletePod{Name: "a", UID: pod.UID}); err != nil {
		t.Fatal(err)
	}
	deletions := 0
	for _, action := range w.kube.Actions() {
		if d, ok := action.(clienttesting.DeleteActionImpl); ok {
			deletions++
			if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != pod.UID {
				t.Errorf("preconditions %v, want the UID: a pod recreated under the name must live", p)
			}
		}
	}
	if deletions != 1 {
		t.Errorf("%d deletions", deletions)
	}
	// The cache still shows it, alive.
	if err := w.pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	o := &plan.Observation{Names: manifest.NamesOf(c.obj), Now: noon}
	if err := c.observePods(t.Context(), o); err != nil || len(o.Pods) != 1 || !o.Pods[0].Deleting {
		t.Errorf("the next pass sees %+v, %v, want a pod that is being deleted", o.Pods, err)
	}
	if err := c.apply(t.Context(), plan.DeletePod{Name: "a", UID: pod.UID}); err != nil {
		t.Errorf("deleting a pod that is gone: %v", err)
	}
	if err := w.pods.Delete(pod); err != nil {
		t.Fatal(err)
	}
	if err := c.observePods(t.Context(), &plan.Observation{Names: manifest.NamesOf(c.obj), Now: noon}); err != nil || len(c.deleted) > 0 {
		t.Errorf("deletions %v, %v are remembered after the pod is gone", c.deleted, err)
	}
}

func TestSetVersionPatchesTheImageOfThatPod(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	obj := testCluster()
	obj.Spec.Repository, obj.Spec.Version = "registry.example.com/etcd", "v3.6.16"
	c := w.cluster(obj)
	pod := w.makePod(memberPod(t, obj, "a"))
	if err := c.apply(t.Context(), plan.SetVersion{Pod: "a", UID: pod.UID, From: "3.6.16", To: "3.7.3", Previous: "3.6.15"}); err != nil {
		t.Fatal(err)
	}
	var patch []byte
	for _, action := range w.kube.Actions() {
		if p, ok := action.(clienttesting.PatchAction); ok {
			patch = p.GetPatch()
		}
	}
	var sent struct{ Metadata struct{ UID types.UID } }
	if err := json.Unmarshal(patch, &sent); err != nil || sent.Metadata.UID != pod.UID {
		t.Errorf("patch %s does not say which pod it is for", patch)
	}
	now := c.podWrites["a"].pod
	if now == nil || now.Spec.Containers[0].Image != "registry.example.com/etcd:v3.7.3" || now.Annotations[manifest.VersionAnnotation] != "3.7.3" || now.Annotations[manifest.PreviousVersionAnnotation] != "3.6.15" {
		t.Fatalf("the pod is now %v", now)
	}
	if len(now.Spec.Containers) != 1 || len(now.Spec.Containers[0].Command) == 0 || len(now.Spec.InitContainers) != 1 {
		t.Error("the patch took more than the image")
	}
	if !w.Told("Member Upgraded: Member a upgraded from 3.6.16 to 3.7.3") {
		t.Errorf("events %q", w.Events())
	}

	err := c.apply(t.Context(), plan.SetVersion{Pod: "a", UID: "earlier", From: "3.7.3", To: "3.7.4"})
	if !apierrors.IsConflict(err) {
		t.Errorf("a patch for an earlier pod of the name: %v", err)
	}
}

func TestRemoveMemberAsksWhetherItsPodIsGone(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, c := range map[string]struct {
		pod     func(*corev1.Pod)
		removed bool
	}{
		"no pod":                  {nil, true},
		"the cache was behind":    {func(*corev1.Pod) {}, false},
		"it is being deleted":     {func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"x/y"} }, true},
		"it was evicted":          {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"it runs, as always":      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"it waits to be assigned": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			cluster := w.cluster(testCluster())
			member := connect(t, cluster, new(etcdtest.Member))
			if c.pod != nil {
				pod := memberPod(t, cluster.obj, "a")
				c.pod(pod)
				w.makePod(pod)
			}
			err := cluster.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "a", Dead: true, Why: plan.Reason{Kind: plan.PodGone}})
			if c.removed {
				if err != nil || len(member.Changes()) != 1 {
					t.Errorf("error %v, changes %v, want the member removed", err, member.Changes())
				}
				if !w.Told("Replacing Dead Member: The dead member a is being replaced") || !w.Told("Member Removed: Existing member a removed from the cluster") {
					t.Errorf("events %q", w.Events())
				}
				return
			}
			if !errors.Is(err, errCacheBehind) || len(member.Changes()) > 0 || len(w.Events()) > 0 {
				t.Errorf("error %v, changes %v, events %q: a member is removed whose pod is there", err, member.Changes(), w.Events())
			}
		})
	}
}

// Somebody else's pod has the name of a member. The status blamed the cache, which never showed that pod.
func TestAPodOfOthersInTheWayIsNamed(t *testing.T) {
	for _, s := range []plan.Step{
		plan.RemoveMember{ID: 5, Name: "a", Dead: true, Why: plan.Reason{Kind: plan.PodGone}},
		plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16", Rejoins: true}}},
	} {
		w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
		c := w.cluster(testCluster())
		connect(t, c, new(etcdtest.Member))
		pod := memberPod(t, c.obj, "a")
		pod.OwnerReferences = nil
		w.makePod(pod)
		if err := c.apply(t.Context(), s); err == nil || isNotYet(err) || !strings.Contains(err.Error(), "pod a exists and does not belong to this EtcdCluster: delete it") {
			t.Errorf("%s: error %v", s, err)
		}
	}
}

func TestRemoveMemberStaysWhereTheAPIServerDoesNotAnswer(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	w.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	})
	c := w.cluster(testCluster())
	member := connect(t, c, new(etcdtest.Member))
	if err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "a", Why: plan.Reason{Kind: plan.PodGone}}); err == nil || len(member.Changes()) > 0 {
		t.Errorf("error %v, changes %v", err, member.Changes())
	}
	// A removal for another reason needs no pod.
	if err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "a", Why: plan.Reason{Detail: "the size is 1"}}); err != nil || len(member.Changes()) != 1 {
		t.Errorf("error %v, changes %v", err, member.Changes())
	}
	if got, want := w.reasons(), []string{"Member Removed"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q: it was not dead", got, want)
	}
}

// The cache may not show yet that the pods with the data that is left are being deleted.
func TestAFormerMemberLeavesOnlyWhileTheOwnPodsStay(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, tt := range map[string]struct {
		pod     func(*corev1.Pod) // nil: it is gone
		removed bool
	}{
		"it runs":              {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"it is being deleted":  {func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"x/y"} }, false},
		"it was evicted":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"another has its name": {func(p *corev1.Pod) { p.Annotations = map[string]string{"another": "yes"} }, false},
		"it is gone":           {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			c := w.cluster(testCluster())
			member := connect(t, c, new(etcdtest.Member))
			relies := []plan.PodRef{{Name: "a", UID: "earlier"}}
			if tt.pod != nil {
				pod := memberPod(t, c.obj, "a")
				tt.pod(pod)
				if uid := w.makePod(pod).UID; pod.Annotations["another"] == "" {
					relies[0].UID = uid
				}
			}
			err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "old-0", Former: true, Relies: relies})
			if removed := len(member.Changes()) == 1; removed != tt.removed || tt.removed && err != nil || !tt.removed && !errors.Is(err, errCacheBehind) {
				t.Errorf("error %v, changes %v", err, member.Changes())
			}
		})
	}
}

func TestAFormerMemberStaysWhereTheAPIServerDoesNotAnswer(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	w.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	})
	c := w.cluster(testCluster())
	member := connect(t, c, new(etcdtest.Member))
	err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "old-0", Former: true, Relies: []plan.PodRef{{Name: "a", UID: "pod-a"}}})
	if err == nil || isNotYet(err) || len(member.Changes()) > 0 {
		t.Errorf("error %v, changes %v", err, member.Changes())
	}
}

// connect makes a member the one that takes changes of the membership.
func connect(t *testing.T, c *Cluster, m *etcdtest.Member) *etcdtest.Member {
	t.Helper()
	m.Start(t)
	conn, err := c.etcd.Conn(etcd.Endpoint{URL: "http://a.invalid:" + m.Port, IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.etcd.Close)
	c.change = conn
	return m
}

func TestAlarmsAreLiftedAndToldOf(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	lift := plan.LiftAlarms{Alarms: []etcd.Alarm{{MemberID: 0x70, Type: etcd.AlarmCorrupt}, {MemberID: 0x71, Type: etcd.AlarmNoSpace}}}
	if err := c.apply(t.Context(), lift); !errors.Is(err, errNoQuorum) || c.postponed.holds(liftingOfAlarms, clock.Now()) {
		t.Errorf("without a quorum: %v", err)
	}
	refuses := connect(t, c, &etcdtest.Member{Refusal: rpctypes.ErrGRPCPermissionDenied})
	if err := c.apply(t.Context(), lift); err == nil || len(refuses.Changes()) != 1 || w.Told("Alarms Lifted") {
		t.Errorf("error %v, events %q", err, w.Events())
	}
	if !c.postponed.holds(liftingOfAlarms, clock.Now()) {
		t.Error("it is tried again at once, and the cluster does not grow")
	}
	clock.Step(refusedPause)
	if c.postponed.holds(liftingOfAlarms, clock.Now()) {
		t.Error("it is never tried again")
	}
	c.etcd.Close()
	member := connect(t, c, new(etcdtest.Member))
	if err := c.apply(t.Context(), lift); err != nil || len(member.Changes()) != 2 {
		t.Fatalf("error %v, changes %v", err, member.Changes())
	}
	for i, want := range []*etcdserverpb.AlarmRequest{
		{Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: 0x70, Alarm: etcdserverpb.AlarmType_CORRUPT},
		{Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: 0x71, Alarm: etcdserverpb.AlarmType_NOSPACE},
	} {
		if got, ok := member.Changes()[i].(*etcdserverpb.AlarmRequest); !ok || got.Action != want.Action || got.MemberID != want.MemberID || got.Alarm != want.Alarm {
			t.Errorf("change %d is %v, want %v", i, member.Changes()[i], want)
		}
	}
	if !w.Told("Alarms Lifted: The backup brought along alarms of removed members, and the operator disarmed them: CORRUPT of 70, NOSPACE of 71") {
		t.Errorf("events %q", w.Events())
	}
}

func TestMembersAreAddedAndPromoted(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	member := connect(t, c, new(etcdtest.Member))
	for _, s := range []plan.Step{plan.AddMember{Name: "b", Learner: true}, plan.PromoteMember{ID: 99, Name: "b"}} {
		if err := c.apply(t.Context(), s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	changes := member.Changes()
	if len(changes) != 2 {
		t.Fatalf("changes %v", changes)
	}
	add, ok := changes[0].(*etcdserverpb.MemberAddRequest)
	if !ok || !add.IsLearner || !reflect.DeepEqual(add.PeerURLs, []string{"http://b.c.ns.svc:2380"}) {
		t.Errorf("added %v", changes[0])
	}
	if promote, ok := changes[1].(*etcdserverpb.MemberPromoteRequest); !ok || promote.ID != 99 {
		t.Errorf("promoted %v", changes[1])
	}
	if got, want := w.reasons(), []string{"New Member Added", "Member Promoted"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Data on a volume that the plan did not know of would be lost with the member.
func TestRemoveMemberAsksForItsVolume(t *testing.T) {
	for name, tt := range map[string]struct{ kept, known, removed bool }{
		"there is none":             {false, false, true},
		"the plan has counted it":   {true, true, true},
		"the plan has not seen it":  {true, false, false},
		"the plan has seen its end": {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
			w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
			c := w.cluster(obj)
			member := connect(t, c, new(etcdtest.Member))
			if tt.kept {
				if _, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), manifest.BuildVolume(obj, "a"), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "a", Volume: tt.known, Dead: true, Why: plan.Reason{Kind: plan.PodGone}})
			if removed := len(member.Changes()) == 1; removed != tt.removed || tt.removed && err != nil || !tt.removed && !errors.Is(err, errCacheBehind) {
				t.Errorf("error %v, changes %v", err, member.Changes())
			}
		})
	}
}

func TestThePodOfARemovedMemberGoes(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	member := connect(t, c, &etcdtest.Member{Refusal: rpctypes.ErrGRPCUnhealthy})
	pod := w.makePod(memberPod(t, c.obj, "a"))
	s := plan.RemoveMember{ID: 5, Name: "a", Pod: pod.UID, Why: plan.Reason{Detail: "the size is 1"}}
	if err := c.apply(t.Context(), s); err == nil || len(member.Changes()) != 1 || w.count("delete", "pods") != 0 {
		t.Errorf("etcd refuses: error %v, %d deletions", err, w.count("delete", "pods"))
	}
	c.etcd.Close()
	connect(t, c, new(etcdtest.Member))
	if err := c.apply(t.Context(), s); err != nil || w.count("delete", "pods") != 1 || len(w.storedPods()) > 0 {
		t.Errorf("error %v, %d deletions", err, w.count("delete", "pods"))
	}
	if _, noted := c.deleted[pod.UID]; !noted {
		t.Errorf("deletions %v are remembered", c.deleted)
	}
}

func TestWithoutAQuorumNothingIsChanged(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	for _, s := range []plan.Step{plan.AddMember{Name: "b"}, plan.PromoteMember{ID: 1}, plan.RemoveMember{ID: 1, Name: "b"}} {
		if err := c.apply(t.Context(), s); !errors.Is(err, errNoQuorum) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// The API server held the write of the status for a while. Other members may have failed meanwhile.
func TestNoMemberIsTakenAwayAfterAnOldLook(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	w.makePod(memberPod(t, c.obj, "a"))
	s := plan.DeletePod{Name: "a", UID: w.storedPods()[0].UID}
	o := &plan.Observation{Now: clock.Now()}
	clock.Step(freshFor)
	if err := c.applyFresh(t.Context(), o, s); !errors.Is(err, errOldObservation) || len(w.storedPods()) != 1 {
		t.Errorf("after an old look: %v, and %d pods are left", err, len(w.storedPods()))
	}
	o.Now = clock.Now().Add(time.Second - freshFor)
	if err := c.applyFresh(t.Context(), o, s); err != nil || len(w.storedPods()) != 0 {
		t.Errorf("after a new look: %v, and %d pods are left", err, len(w.storedPods()))
	}
}
