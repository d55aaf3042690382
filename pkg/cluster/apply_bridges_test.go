// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// bridgeWorld is a cluster of three members, and two Services of somebody else.
type bridgeWorld struct {
	*world
	clock *clocktesting.FakeClock
	c     *Cluster
}

func newBridgeWorld(t *testing.T) *bridgeWorld {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Spec.Service = &api.ServicePolicy{Bridges: []api.ServiceBridge{{Name: "old"}, {Name: "old-headless", Hostnames: []string{"old-0", "old-1", "old-2"}}}}
	w := &bridgeWorld{newWorld(t, clock, obj), clock, nil}
	fakeMembers{}.join(t, w.world, "a", "b", "c")
	for i, name := range []string{"a", "b", "c"} {
		w.editPod(name, func(pod *corev1.Pod) {
			pod.Status.PodIP = "10.1.0." + string(rune('1'+i))
			pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}, {IP: "fd00::" + string(rune('1'+i))}}
		})
	}
	for _, svc := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.8", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "old-headless"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, IPFamilies: manifest.BridgeFamilies}},
	} {
		svc.Namespace, svc.Spec.Ports = "ns", []corev1.ServicePort{{Name: "client", Port: 2379}}
		w.makeService(svc)
	}
	w.c = w.cluster(obj)
	return w
}

// settle makes passes until several in a row have written no bridge, and returns the writes.
func (w *bridgeWorld) settle() (written []string) {
	w.t.Helper()
	quiet := 0
	for range 40 {
		w.watch()
		s, err := w.c.pass(w.t.Context())
		if err != nil && !isNotYet(err) {
			w.t.Fatalf("%s: %v", s, err)
		}
		if b, ok := s.(plan.WriteBridge); ok {
			written, quiet = append(written, b.String()), 0
		} else if quiet++; quiet == 8 {
			return written
		}
	}
	w.t.Fatalf("it never settles: %q", written)
	return nil
}

// leads are the slices, each with its addresses and host names.
func (w *bridgeWorld) leads() (all []string) {
	w.t.Helper()
	list, err := w.kube.DiscoveryV1().EndpointSlices("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list.Items {
		text := s.Name + ":"
		for _, e := range s.Endpoints {
			text += " " + e.Addresses[0]
			if e.Hostname != nil {
				text += "@" + *e.Hostname
			}
			if !*e.Conditions.Serving {
				text += "!"
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func (w *bridgeWorld) wantLeads(want ...string) {
	w.t.Helper()
	if got := w.leads(); !slices.Equal(got, want) {
		w.t.Errorf("the slices are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var bridged []string
	for _, s := range want {
		bridged = append(bridged, strings.Split(s, ".")[0])
	}
	slices.Sort(bridged)
	if got := w.etcdCluster().Status.BridgedServices; !slices.Equal(got, slices.Compact(bridged)) {
		w.t.Errorf("the status says %q, want %q", got, bridged)
	}
}

// respec gives the Cluster an edited spec.
func (w *bridgeWorld) respec(change func(*api.ClusterSpec)) {
	w.c.take(w.edit(func(obj *api.EtcdCluster) { change(&obj.Spec); obj.Generation++ }))
}

var whole = []string{
	"old-headless.etcd-bridge.ipv4: 10.1.0.1@old-0 10.1.0.2@old-1 10.1.0.3@old-2",
	"old-headless.etcd-bridge.ipv6: fd00::1@old-0 fd00::2@old-1 fd00::3@old-2",
	"old.etcd-bridge.ipv4: 10.1.0.1 10.1.0.2 10.1.0.3",
}

func TestServicesOfOthersLeadToTheMembers(t *testing.T) {
	w := newBridgeWorld(t)
	w.settle()
	w.wantLeads(whole...)

	w.editPod("b", func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "")}
	})
	w.settle()
	w.wantLeads(
		"old-headless.etcd-bridge.ipv4: 10.1.0.1@old-0 10.1.0.2@old-1! 10.1.0.3@old-2",
		"old-headless.etcd-bridge.ipv6: fd00::1@old-0 fd00::2@old-1! fd00::3@old-2",
		"old.etcd-bridge.ipv4: 10.1.0.1 10.1.0.3")
	w.editPod("b", func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}
	})
	w.settle()
	w.wantLeads(whole...)

	// Another operator continues, without a write.
	w.c = w.cluster(w.etcdCluster())
	if written := w.settle(); len(written) > 0 {
		t.Errorf("a new operator writes %q", written)
	}
	w.respec(func(spec *api.ClusterSpec) { spec.Service.Bridges = spec.Service.Bridges[:1] })
	w.settle()
	w.wantLeads(whole[2])
	// The name is no longer in the spec when the operator starts.
	obj := w.edit(func(obj *api.EtcdCluster) { obj.Spec.Service = nil; obj.Generation++ })
	w.c = w.cluster(obj)
	w.settle()
	w.wantLeads()
}

func TestABridgeIsKept(t *testing.T) {
	w := newBridgeWorld(t)
	w.settle()
	client := w.kube.DiscoveryV1().EndpointSlices("ns")
	if err := client.Delete(t.Context(), "old.etcd-bridge.ipv4", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other, err := client.Get(t.Context(), "old-headless.etcd-bridge.ipv6", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other = other.DeepCopy()
	other.Endpoints, other.Labels[discoveryv1.LabelServiceName] = other.Endpoints[:1], "elsewhere"
	if _, err := client.Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(bridgePeriod)
	if !w.c.bridges.due(w.clock.Now()) {
		t.Error("a resting cluster would not look at the bridges")
	}
	w.settle()
	w.wantLeads(whole...)

	// The Service goes, and comes back with another port.
	if err := w.kube.CoreV1().Services("ns").Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(bridgePeriod)
	w.settle()
	w.wantLeads(whole[:2]...)
	if got := w.reasons(); !slices.Contains(got, "Bridge Held") {
		t.Errorf("events %q", got)
	}
}

// A write that failed after the first of two slices is no edit of somebody else.
func TestABridgeWrittenInPartIsNoEdit(t *testing.T) {
	w := newBridgeWorld(t)
	w.settle()
	fails := true
	w.kube.PrependReactor("update", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if s, ok := a.(clienttesting.UpdateAction).GetObject().(*discoveryv1.EndpointSlice); ok && fails && s.AddressType == discoveryv1.AddressTypeIPv6 {
			return true, nil, apierrors.NewInternalError(errors.New("the API server restarts"))
		}
		return false, nil, nil
	})
	w.editPod("b", func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "")}
	})
	failed := 0
	for range 60 {
		w.watch()
		if _, err := w.c.pass(t.Context()); err != nil {
			failed++
		}
		w.clock.Step(500 * time.Millisecond)
	}
	fails = false
	w.clock.Step(refusedPause)
	w.settle()
	w.wantLeads(
		"old-headless.etcd-bridge.ipv4: 10.1.0.1@old-0 10.1.0.2@old-1! 10.1.0.3@old-2",
		"old-headless.etcd-bridge.ipv6: fd00::1@old-0 fd00::2@old-1! fd00::3@old-2",
		"old.etcd-bridge.ipv4: 10.1.0.1 10.1.0.3")
	if got := w.reasons(); failed < 2 || slices.Contains(got, "Edit Undone") {
		t.Errorf("%d failed passes, events %q", failed, got)
	}

	client := w.kube.DiscoveryV1().EndpointSlices("ns")
	edited, err := client.Get(t.Context(), "old.etcd-bridge.ipv4", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edited = edited.DeepCopy()
	edited.Ports = nil
	if _, err := client.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(bridgePeriod)
	w.settle()
	if got := w.reasons(); !slices.Contains(got, "Edit Undone") {
		t.Errorf("events %q", got)
	}
}

func TestABridgeLeavesWhatIsSomebodyElses(t *testing.T) {
	w := newBridgeWorld(t)
	client := w.kube.DiscoveryV1().EndpointSlices("ns")
	theirs := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "old.etcd-bridge.ipv4", Namespace: "ns"}, AddressType: discoveryv1.AddressTypeIPv4}
	if _, err := client.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// That of an EtcdCluster that was deleted is taken over.
	earlier := testCluster()
	earlier.UID = "earlier"
	svc := w.service("old-headless")
	left := manifest.BuildBridge(earlier, svc, []manifest.BridgeEnd{{Pod: "z", UID: "z", Addresses: []string{"10.1.0.9"}}})[0]
	if _, err := client.Create(t.Context(), left, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.watch()
		if _, err := w.c.pass(t.Context()); err != nil {
			t.Log(err)
		}
	}
	want := append([]string{}, whole[:2]...)
	if got := w.leads(); !slices.Equal(got, append(want, "old.etcd-bridge.ipv4:")) {
		t.Errorf("the slices are %q", got)
	}
	live, err := client.Get(t.Context(), left.Name, metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(live, w.c.obj) {
		t.Errorf("the earlier slice has the owner %+v, %v", live.OwnerReferences, err)
	}
}

// Two EtcdClusters hold different data: clients of one Service must not reach both.
func TestAServiceLeadsToOneEtcdClusterAlone(t *testing.T) {
	w := newBridgeWorld(t)
	other := testCluster()
	other.Name, other.UID = "other", "other"
	theirs := manifest.BuildBridge(other, w.service("old"), []manifest.BridgeEnd{{Pod: "z", UID: "z", Addresses: []string{"10.1.0.9"}}})[0]
	if _, err := w.kube.DiscoveryV1().EndpointSlices("ns").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	told := false
	for range 10 {
		w.watch()
		_, err := w.c.pass(t.Context())
		told = told || err != nil && strings.Contains(err.Error(), "service old leads to EtcdCluster other, which holds other data")
	}
	if want := append([]string{}, whole[:2]...); !slices.Equal(w.leads(), append(want, "old.etcd-bridge.ipv4: 10.1.0.9!")) {
		t.Errorf("the slices are %q", w.leads())
	}
	if !told {
		t.Error("no error names the other EtcdCluster")
	}
}

func TestARefusedBridgeDelaysNothing(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		w := newBridgeWorld(t)
		w.kube.PrependReactor(verb, "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "x", errors.New("no right"))
		})
		tried := 0
		for range 10 {
			w.watch()
			if s, _ := w.c.pass(t.Context()); s.String() == "bridge service old to a, b, c" {
				tried++
			}
		}
		if want := map[string]int{"get": 0, "create": 1}[verb]; tried != want {
			t.Errorf("%s: the operator has tried it in %d of 10 passes, want %d", verb, tried, want)
		}
		if got := w.reasons(); !slices.Contains(got, "Write Refused") {
			t.Errorf("%s: events %q", verb, got)
		}
	}
}

// Admission that changes each slice must not cost a write in each pass.
func TestAnAdmissionThatEditsABridgeCausesNoStorm(t *testing.T) {
	w := newBridgeWorld(t)
	w.kube.PrependReactor("*", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if write, ok := a.(clienttesting.CreateAction); ok {
			if s, ok := write.GetObject().(*discoveryv1.EndpointSlice); ok {
				s.Ports = nil
			}
		}
		return false, nil, nil
	})
	for range 100 {
		w.watch()
		if s, err := w.c.pass(t.Context()); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		w.clock.Step(100 * time.Millisecond)
	}
	if n := w.count("create", "endpointslices") + w.count("update", "endpointslices"); n > 12 {
		t.Errorf("%d writes in ten seconds", n)
	}
}

func TestAServiceThatCanNotLeadToMembersIsTold(t *testing.T) {
	owned := manifest.BuildClientService(testCluster())
	for name, c := range map[string]struct {
		svc  *corev1.Service
		want string
	}{
		"none":              {nil, "does not exist"},
		"the cluster's":     {owned, "the EtcdCluster's own"},
		"another name":      {&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x"}}, "leads to the name x"},
		"no port of etcd's": {&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}, {Port: 2}}}}, "has no port"},
		"a good one":        {&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 2379}}}}, ""},
	} {
		got := bridgeProblem("old", c.svc, testCluster())
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A bridge that can't exist is not what the spec says, and one state: the status is not written at
// each attempt.
func TestABridgeThatIsHeldIsNotAsSpecified(t *testing.T) {
	refuse := func(w *bridgeWorld, verb string) {
		w.kube.PrependReactor(verb, "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "x", errors.New("exceeded quota: q"))
		})
	}
	for name, tt := range map[string]struct {
		prepare func(*bridgeWorld)
		says    string
	}{
		"a quota refuses the slices": {func(w *bridgeWorld) { refuse(w, "create") }, "exceeded quota: q"},
		"a right is missing":         {func(w *bridgeWorld) { refuse(w, "get") }, "exceeded quota: q"},
		"no such Service": {func(w *bridgeWorld) {
			w.respec(func(spec *api.ClusterSpec) { spec.Service.Bridges[0].Name = "none" })
		}, "Service none (spec.service.bridges) does not exist"},
		"another EtcdCluster has the Service": {func(w *bridgeWorld) {
			other := testCluster()
			other.Name, other.UID = "other", "other"
			theirs := manifest.BuildBridge(other, w.service("old"), []manifest.BridgeEnd{{Pod: "z", UID: "z", Addresses: []string{"10.1.0.9"}}})[0]
			if _, err := w.kube.DiscoveryV1().EndpointSlices("ns").Create(w.t.Context(), theirs, metav1.CreateOptions{}); err != nil {
				w.t.Fatal(err)
			}
		}, "service old leads to EtcdCluster other, which holds other data"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBridgeWorld(t)
			tt.prepare(w)
			var bridged []string
			changes, unsaid := 0, 0
			for i := range 300 {
				w.watch()
				if s, err := w.c.pass(t.Context()); err != nil {
					t.Logf("%s: %v", s, err)
				}
				w.clock.Step(500 * time.Millisecond)
				st := w.etcdCluster().Status
				if !slices.Equal(st.BridgedServices, bridged) {
					bridged = st.BridgedServices
					changes++
				}
				if i > 40 && (!strings.Contains(st.Reason, tt.says) || st.Condition(api.ConditionStalled).Reason != "BridgeHeld") {
					unsaid++
				}
			}
			if changes > 2 || unsaid > 0 {
				st := w.etcdCluster().Status
				t.Errorf("%d changes of bridgedServices, %d passes without the reason: now %q, Stalled is %+v", changes, unsaid, st.Reason, st.Condition(api.ConditionStalled))
			}
		})
	}
}

// An address that a pod no longer has may be another pod's. It goes also while the operator leaves
// the cluster alone, and nothing is added.
func TestAPausedClusterLosesDeadAddresses(t *testing.T) {
	w := newBridgeWorld(t)
	w.settle()
	w.respec(func(spec *api.ClusterSpec) { spec.Paused = true })
	if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ready := func(status corev1.ConditionStatus) {
		w.editPod("a", func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, status, "")}
		})
	}
	ready(corev1.ConditionFalse)
	w.clock.Step(time.Minute) // the operator has written the pod, and doubts its absence for a while
	w.settle()
	w.wantLeads(
		"old-headless.etcd-bridge.ipv4: 10.1.0.1@old-0! 10.1.0.3@old-2",
		"old-headless.etcd-bridge.ipv6: fd00::1@old-0! fd00::3@old-2",
		"old.etcd-bridge.ipv4: 10.1.0.1! 10.1.0.3")
	ready(corev1.ConditionTrue)
	w.settle()
	w.wantLeads(
		"old-headless.etcd-bridge.ipv4: 10.1.0.1@old-0 10.1.0.3@old-2",
		"old-headless.etcd-bridge.ipv6: fd00::1@old-0 fd00::3@old-2",
		"old.etcd-bridge.ipv4: 10.1.0.1 10.1.0.3")
}

// A finalizer may hold somebody else's slice for long. Nothing else waits for that.
func TestASliceThatIsBeingDeletedDelaysNothing(t *testing.T) {
	w := newBridgeWorld(t)
	other := testCluster()
	other.Name, other.UID = "other", "other"
	theirs := manifest.BuildBridge(other, w.service("old"), []manifest.BridgeEnd{{Pod: "z", UID: "z", Addresses: []string{"10.1.0.9"}}})[0]
	theirs.DeletionTimestamp, theirs.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
	if _, err := w.kube.DiscoveryV1().EndpointSlices("ns").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tried, others := 0, 0
	for range 60 {
		w.watch()
		s, err := w.c.pass(t.Context())
		if err != nil && !isNotYet(err) {
			t.Fatalf("%s: %v", s, err)
		}
		if s.String() == "bridge service old to a, b, c" {
			tried++
		} else {
			others++
		}
		w.clock.Step(500 * time.Millisecond)
	}
	if tried == 0 || tried > 4 || others < 50 {
		t.Errorf("the operator has tried it in %d passes, and another step in %d", tried, others)
	}
}
