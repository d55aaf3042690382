// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// served gives a Service what the API server and a load balancer add to it.
func served(svc *corev1.Service) *corev1.Service {
	svc = svc.DeepCopy()
	svc.Spec.Type, svc.Spec.SessionAffinity = corev1.ServiceTypeClusterIP, corev1.ServiceAffinityNone
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
	}
	return svc
}

func TestEditsOfServicesAreTold(t *testing.T) {
	withPolicy := testCluster()
	withPolicy.Spec.Service = &api.ServicePolicy{Annotations: map[string]string{"theirs.io/a": "1"}}
	for name, c := range map[string]struct {
		edit   func(*corev1.Service)
		edited string
	}{
		"nothing":               {func(*corev1.Service) {}, ""},
		"the selector":          {func(s *corev1.Service) { s.Spec.Selector["tier"] = "x" }, "selector"},
		"no selector":           {func(s *corev1.Service) { s.Spec.Selector = nil }, "selector"},
		"a port":                {func(s *corev1.Service) { s.Spec.Ports[0].Port = 80 }, "ports"},
		"a target port":         {func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(80) }, "ports"},
		"a further port":        {func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, manifest.ServicePort("x", 1)) }, "ports"},
		"members not ready":     {func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }, "publishNotReadyAddresses"},
		"a label of ours":       {func(s *corev1.Service) { delete(s.Labels, "etcd_cluster") }, "labels"},
		"an annotation of ours": {func(s *corev1.Service) { s.Annotations["theirs.io/a"] = "2" }, "annotations"},
		"no owner":              {func(s *corev1.Service) { s.OwnerReferences = nil }, "owner"},
		"an earlier owner":      {func(s *corev1.Service) { s.OwnerReferences[0].UID = "earlier" }, "owner"},
		"it leads elsewhere": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "elsewhere.example"
		}, "type"},

		"a further label":      {func(s *corev1.Service) { s.Labels["team"] = "x" }, ""},
		"a further annotation": {func(s *corev1.Service) { s.Annotations["x/y"] = "z" }, ""},
		"a further owner": {func(s *corev1.Service) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{Kind: "App", Name: "a", UID: "a"})
		}, ""},
		"a NodePort": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30123
		}, ""},
		"a LoadBalancer": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports[0].NodePort, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, 30123, new("x")
			s.Spec.Ports[0].AppProtocol = new("x")
		}, ""},
		"a session affinity": {func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, ""},
	} {
		want := manifest.BuildClientService(withPolicy)
		live := served(want)
		c.edit(live)
		corrected, edited := manifest.UpdatedService(live, want)
		if edited != c.edited {
			t.Errorf("%s: %q was edited, want %q", name, edited, c.edited)
		}
		if again, edited := manifest.UpdatedService(corrected, want); edited != "" {
			t.Errorf("%s: after the correction, %q is edited: %v", name, edited, again)
		}
		if c.edited == "" && !equality.Semantic.DeepEqual(corrected, live) {
			t.Errorf("%s: what others wrote is changed from\n%v\nto\n%v", name, live, corrected)
		}
	}
}

func TestAnnotationsFollowTheSpecAndOthersStay(t *testing.T) {
	obj := testCluster()
	annotations := func(a map[string]string) *corev1.Service {
		obj.Spec.Service = &api.ServicePolicy{Annotations: a}
		return manifest.BuildClientService(obj)
	}
	live := served(annotations(map[string]string{"a": "1", "b": "1"}))
	live.Annotations["foreign"] = "x"
	for _, want := range []map[string]string{{"b": "2", "c": "1"}, {}, {"foreign": "ours now"}, nil} {
		live, _ = manifest.UpdatedService(live, annotations(want))
		got := maps.Clone(live.Annotations)
		delete(got, manifest.OwnAnnotations)
		expect := map[string]string{}
		if _, taken := want["foreign"]; !taken && want != nil {
			expect["foreign"] = "x"
		}
		maps.Copy(expect, want)
		if !maps.Equal(got, expect) {
			t.Errorf("the spec says %v: the Service has %v, want %v", want, got, expect)
		}
		if _, listed := live.Annotations[manifest.OwnAnnotations]; listed != (len(want) > 0) {
			t.Errorf("the spec says %v: the list of them is there: %t", want, listed)
		}
	}
}

func TestTheServicePolicyNamesAndNarrowsTheClientService(t *testing.T) {
	obj := testCluster()
	obj.Spec.Service = &api.ServicePolicy{Name: "db", Selector: map[string]string{"tier": "fast", "etcd_cluster": "other"}}
	svc := manifest.BuildClientService(obj)
	want := map[string]string{"tier": "fast", "app": "etcd", "etcd_cluster": "c"}
	if svc.Name != "db" || !maps.Equal(svc.Spec.Selector, want) {
		t.Errorf("name %s, selector %v, want %v", svc.Name, svc.Spec.Selector, want)
	}
	if peer := manifest.BuildPeerService(obj); peer.Name != "c" || len(peer.Spec.Selector) != 2 {
		t.Errorf("the members' own Service follows the policy of the clients': %v", peer)
	}
}

// keep observes, and returns what the rules about Services would do.
func keep(t *testing.T, w *world, c *Cluster) plan.Step {
	t.Helper()
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []func(*plan.Observation) plan.Step{plan.KeepPeerService, plan.KeepClientService, plan.DropFormerService} {
		if s := rule(o); s != nil {
			return s
		}
	}
	return plan.Idle{Why: plan.Reason{Detail: "Services are as they should be"}}
}

func TestAServiceEditedByHandComesBackWithoutAStormOfWrites(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	w.makeService(served(manifest.BuildPeerService(c.obj)))
	edit := func() {
		svc := served(manifest.BuildClientService(c.obj))
		svc.Spec.Selector = map[string]string{"app": "elsewhere"}
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), svc, "ns"); err != nil {
			t.Fatal(err)
		}
	}
	w.makeService(served(manifest.BuildClientService(c.obj)))
	edit()
	s := keep(t, w, c)
	if s.String() != "correct client service: selector" {
		t.Fatalf("the step is %q", s)
	}
	if err := c.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if svc := w.service("c-client"); svc.Spec.Selector["app"] != "etcd" || svc.Spec.ClusterIP != "10.0.0.7" {
		t.Errorf("it is %v", svc.Spec)
	}
	if !w.Told("Edit Undone: Service c-client") {
		t.Errorf("events %q", w.Events())
	}
	edit() // at once again, by some controller
	if s := keep(t, w, c); !strings.HasPrefix(s.String(), "idle") {
		t.Errorf("right after its correction: %s", s)
	}
	clock.Step(correctionPause)
	if s := keep(t, w, c); s.String() != "correct client service: selector" {
		t.Errorf("a while later: %s", s)
	}
}

func TestTheCacheBehindAServiceIsNoFailure(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	svc := served(manifest.BuildClientService(c.obj))
	svc.Spec.Ports[0].Port = 80
	w.makeService(svc)
	w.watch()
	w.kube.PrependReactor("update", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("services"), "c-client", errors.New("newer"))
	})
	if err := c.apply(t.Context(), plan.UpdateService{Client: true, Edited: "ports"}); !errors.Is(err, errCacheBehind) {
		t.Errorf("a conflict: %v", err)
	}
	if len(c.postponed) > 0 {
		t.Errorf("a conflict puts off %v", c.postponed)
	}
}

// conflicts makes the API server refuse each update of an object that the cache has.
func (w *world) conflicts(resource string, cached metav1.Object) {
	w.kube.PrependReactor("update", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		updated := a.(clienttesting.UpdateAction).GetObject().(metav1.Object)
		stale := updated.GetName() == cached.GetName() && updated.GetResourceVersion() == cached.GetResourceVersion()
		return stale, nil, apierrors.NewConflict(corev1.Resource(resource), cached.GetName(), errors.New("it has been modified"))
	})
}

// The watch of the Services is lost. An update from the cache conflicts with a later state, and each pass
// tried again. Lost pods were not created meanwhile.
func TestAServiceIsCorrectedWhileTheCacheIsBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		live func(*corev1.Service)
		told bool
	}{
		"as it should be":       {func(*corev1.Service) {}, false},
		"edited in another way": {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "elsewhere"} }, true},
		"of an earlier cluster": {func(s *corev1.Service) { s.OwnerReferences[0].UID = "earlier" }, true},
		"gone":                  {nil, false},
	} {
		for _, client := range []bool{false, true} {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			c := w.cluster(testCluster())
			w.makeService(served(manifest.BuildPeerService(c.obj)))
			w.makeService(served(manifest.BuildClientService(c.obj)))
			w.watch()
			want := c.wantedService(client)
			cached := w.service(want.Name).DeepCopy()
			cached.ResourceVersion, cached.Spec.Ports[0].Port = "older", 80
			if err := w.services.Update(cached); err != nil {
				t.Fatal(err)
			}
			if tc.live == nil {
				if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("services"), "ns", want.Name); err != nil {
					t.Fatal(err)
				}
			} else {
				w.conflicts("services", cached)
				newer := w.service(want.Name).DeepCopy()
				newer.ResourceVersion = "newer"
				tc.live(newer)
				if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), newer, "ns"); err != nil {
					t.Fatal(err)
				}
			}
			steps := func() (s plan.Step) {
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if s = plan.KeepPeerService(o); s == nil {
					s = plan.KeepClientService(o)
				}
				return s
			}
			if s := steps(); s == nil || c.apply(t.Context(), s) != nil {
				t.Errorf("%s: failed at %v", name, s)
			}
			if s := steps(); s != nil {
				t.Errorf("%s: at once again: %s", name, s)
			}
			if _, edited := manifest.UpdatedService(w.service(want.Name), want); edited != "" {
				t.Errorf("%s: %s of service %s are wrong", name, edited, want.Name)
			}
			if w.Told("Edit Undone") != tc.told {
				t.Errorf("%s: events %q", name, w.Events())
			}
		}
	}
}

// The informer sees objects labelled app=etcd: one that lost the label looks as
// if it were gone.
func TestAServiceThatLostItsLabelsIsFound(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	svc := served(manifest.BuildClientService(c.obj))
	svc.Labels = nil
	w.makeService(svc)
	if err := c.apply(t.Context(), plan.CreateService{Client: true}); err != nil {
		t.Fatal(err)
	}
	if got := w.service("c-client").Labels; got["app"] != "etcd" || got["etcd_cluster"] != "c" {
		t.Errorf("labels %v", got)
	}
}

func TestAPeerServiceThatIsNotHeadlessIsMadeAgain(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	svc := served(manifest.BuildPeerService(c.obj))
	svc.Spec.ClusterIP, svc.OwnerReferences = "10.0.0.8", nil
	w.makeService(svc)
	for range 5 {
		s := keep(t, w, c)
		if err := c.apply(t.Context(), s); err != nil && !errors.Is(err, errBeingDeleted) {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if svc := w.service("c"); svc.Spec.ClusterIP != corev1.ClusterIPNone || !metav1.IsControlledBy(svc, c.obj) {
		t.Errorf("it is %v", svc)
	}
}

func TestARenamedClientServiceIsReplaced(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	obj := testCluster()
	c := w.cluster(obj)
	w.makeService(served(manifest.BuildPeerService(obj)))
	w.makeService(served(manifest.BuildClientService(obj)))
	byHand := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Namespace: "ns", Labels: manifest.NamesOf(obj).Labels()}}
	w.makeService(byHand)
	renamed := obj.DeepCopy()
	renamed.Spec.Service = &api.ServicePolicy{Name: "db"}
	c.take(renamed)
	var steps []string
	for range 3 {
		s := keep(t, w, c)
		steps = append(steps, s.String())
		if err := c.apply(t.Context(), s); err != nil && !errors.Is(err, errBeingDeleted) {
			t.Fatal(err)
		}
	}
	want := []string{"create client service", "delete service c-client: the client service is now db", "idle: Services are as they should be"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	w.service("db")
	w.service("by-hand")
}

func TestAClientServiceThatIsRefusedIsToldOnceAndTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	w.makeService(served(manifest.BuildPeerService(c.obj)))
	quota := true
	w.kube.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return quota, nil, apierrors.NewForbidden(corev1.Resource("services"), "c-client", errors.New("exceeded quota"))
	})
	for range 3 {
		if err := c.apply(t.Context(), keep(t, w, c)); err == nil {
			t.Error("no error")
		}
		if s := keep(t, w, c); !strings.HasPrefix(s.String(), "idle") {
			t.Errorf("at once again: %s", s)
		}
		clock.Step(refusedPause)
	}
	if len(w.Events()) != 1 || !w.Told("exceeded quota") {
		t.Errorf("events %q", w.Events())
	}
	quota = false
	if err := c.apply(t.Context(), keep(t, w, c)); err != nil {
		t.Error(err)
	}
	w.service("c-client")
}

// Later rules must not starve behind a write that the API server refuses each time.
func TestWritesThatAreRefusedAreToldOncePutOffAndTriedAgain(t *testing.T) {
	former := manifest.BuildClientService(testCluster())
	renamed := testCluster()
	renamed.Spec.Service = &api.ServicePolicy{Name: "db"}
	noBudget := testCluster()
	noBudget.Spec.PodDisruptionBudget = new(false)
	edited := manifest.BuildPeerService(testCluster())
	edited.Spec.Selector = map[string]string{"app": "elsewhere"}
	notHeadless := manifest.BuildPeerService(testCluster())
	notHeadless.Spec.ClusterIP = "10.0.0.8"
	for name, tc := range map[string]struct {
		obj            *api.EtcdCluster
		services       []*corev1.Service
		verb, resource string
		step           string
	}{
		"an update of the peer Service":  {testCluster(), []*corev1.Service{edited}, "update", "services", "correct peer service"},
		"a deletion of the peer Service": {testCluster(), []*corev1.Service{notHeadless}, "delete", "services", "delete service c:"},
		"a deletion of a former Service": {renamed, []*corev1.Service{manifest.BuildPeerService(renamed), manifest.BuildClientService(renamed), former}, "delete", "services", "delete service c-client:"},
		"a deletion of the budget":       {noBudget, []*corev1.Service{manifest.BuildPeerService(noBudget), manifest.BuildClientService(noBudget)}, "delete", "poddisruptionbudgets", "delete disruption budget"},
		"an update of the client Service's": {renamed, []*corev1.Service{manifest.BuildPeerService(renamed), func() *corev1.Service {
			svc := manifest.BuildClientService(renamed)
			svc.Spec.Ports[0].Port = 80
			return svc
		}()}, "update", "services", "correct client service"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, tc.obj)
			c := w.cluster(tc.obj)
			for _, svc := range tc.services {
				w.makeService(served(svc))
			}
			if tc.resource == "poddisruptionbudgets" {
				if _, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Create(t.Context(), manifest.BuildBudget(tc.obj, 2), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			forbidden := true
			w.kube.PrependReactor(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return forbidden, nil, apierrors.NewForbidden(corev1.Resource(tc.resource), "c", errors.New("no such right"))
			})
			next := func() plan.Step {
				w.watch()
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, rule := range []func(*plan.Observation) plan.Step{plan.KeepPeerService, plan.KeepBudget, plan.DropFormerService, plan.KeepClientService} {
					if s := rule(o); s != nil && strings.HasPrefix(s.String(), tc.step) {
						return s
					}
				}
				return nil
			}
			for range 3 {
				s := next()
				if s == nil {
					t.Fatal("it is not tried again")
				}
				if err := c.apply(t.Context(), s); err == nil || errors.Is(err, errCacheBehind) {
					t.Errorf("error %v", err)
				}
				if s := next(); s != nil {
					t.Errorf("at once again: %s", s)
				}
				clock.Step(refusedPause)
			}
			if n := w.Times("no such right"); n != 1 {
				t.Errorf("reported %d times: %q", n, w.Events())
			}
			forbidden = false
			if err := c.apply(t.Context(), next()); err != nil && !errors.Is(err, errBeingDeleted) {
				t.Error(err)
			}
			clock.Step(max(correctionPause, refusedPause))
			if s := next(); s != nil {
				t.Errorf("when it was taken: %s", s)
			}
		})
	}
}

// Without it members don't find each other.
func TestAMissingPeerServiceIsTriedEachTime(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	w.kube.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("services"), "c", errors.New("exceeded quota"))
	})
	for range 3 {
		s := keep(t, w, c)
		if s.String() != "create peer service" {
			t.Fatalf("the step is %s", s)
		}
		if err := c.apply(t.Context(), s); err == nil {
			t.Error("no error")
		}
	}
}

func (w *world) storedBudget() *policyv1.PodDisruptionBudget {
	w.t.Helper()
	b, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Get(w.t.Context(), "c", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// budgetOf observes the budget alone.
func budgetOf(t *testing.T, w *world, c *Cluster) plan.BudgetState {
	t.Helper()
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o.Budget
}

func TestTheBudgetIsMadeChangedAndDeleted(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateBudget{MinAvailable: 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context(), plan.CreateBudget{MinAvailable: 2}); err != nil {
		t.Errorf("the one that was just made: %v", err)
	}
	b := w.storedBudget()
	if !metav1.IsControlledBy(b, c.obj) || manifest.MinAvailableOf(b) != 2 || !maps.Equal(b.Spec.Selector.MatchLabels, manifest.NamesOf(c.obj).Labels()) || b.Spec.UnhealthyPodEvictionPolicy != nil {
		t.Errorf("it is %v", b)
	}
	if seen := budgetOf(t, w, c); !seen.Ok() || seen.MinAvailable != 2 || seen.Edited != "" {
		t.Errorf("it is seen as %+v", seen)
	}
	if err := c.apply(t.Context(), plan.UpdateBudget{From: 2, To: 3}); err != nil {
		t.Fatal(err)
	}
	if seen := budgetOf(t, w, c); seen.MinAvailable != 3 || seen.Written != 3 {
		t.Errorf("it is seen as %+v", seen)
	}
	if w.Told("Edit Undone") {
		t.Error("the operator's own change is reported as somebody's edit")
	}
	clock.Step(correctionPause)
	if seen := budgetOf(t, w, c); seen.Written != 0 {
		t.Errorf("later it is seen as %+v", seen)
	}
	if err := c.apply(t.Context(), plan.DeleteBudget{UID: b.UID}); err != nil {
		t.Error(err)
	}
	if o, err := c.observe(t.Context()); err != nil || !o.Budget.Leaving {
		t.Errorf("while the cache shows it, it is seen as %+v, %v", o.Budget, err)
	}
	if seen := budgetOf(t, w, c); seen.Owned || seen.MinAvailable != 0 {
		t.Errorf("deleted, it is seen as %+v", seen)
	}
}

// The watch of the budgets is lost for minutes, while the number must follow the members.
func TestABudgetFollowsWhileTheCacheIsBehind(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	if err := c.apply(t.Context(), plan.CreateBudget{MinAvailable: 2}); err != nil {
		t.Fatal(err)
	}
	budgetOf(t, w, c)
	// Somebody else has written it meanwhile.
	newer := w.storedBudget()
	newer.ResourceVersion = "newer"
	if err := w.kube.Tracker().Update(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), newer, "ns"); err != nil {
		t.Fatal(err)
	}
	w.kube.PrependReactor("update", "poddisruptionbudgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		b := a.(clienttesting.UpdateAction).GetObject().(*policyv1.PodDisruptionBudget)
		if b.ResourceVersion != "newer" {
			return true, nil, apierrors.NewConflict(policyv1.Resource("poddisruptionbudgets"), b.Name, errors.New("it has been modified"))
		}
		return false, nil, nil
	})
	for _, number := range []int{3, 4} {
		if err := c.apply(t.Context(), plan.UpdateBudget{From: 2, To: number}); err != nil {
			t.Fatalf("of %d: %v", number, err)
		}
		if got := manifest.MinAvailableOf(w.storedBudget()); got != number {
			t.Errorf("it is %d, want %d", got, number)
		}
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Budget.Written != number || o.Budget.MinAvailable != 2 {
			t.Errorf("after %d was written, it is seen as %+v", number, o.Budget)
		}
	}
	if w.Told("Edit Undone") {
		t.Error("the operator's own change is reported as somebody's edit")
	}
}

// A deletion of the budget went by unseen, and each pass tried to update it.
func TestABudgetThatTheCacheStillShowsIsMadeAgain(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	if err := w.budgets.Add(manifest.BuildBudget(c.obj, 2)); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context(), plan.UpdateBudget{From: 2, To: 3}); err != nil {
		t.Fatal(err)
	}
	if b := w.storedBudget(); b == nil || manifest.MinAvailableOf(b) != 3 {
		t.Errorf("it is %v", b)
	}
	if o, err := c.observe(t.Context()); err != nil || o.Budget.Written != 3 {
		t.Errorf("it is seen as %+v, %v", o.Budget, err)
	}
}

// The cache shows the budget of an earlier EtcdCluster, which the operator has taken over.
func TestATakenOverBudgetIsNotWrittenUntilTheCacheShowsIt(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	earlier := manifest.BuildBudget(c.obj, 2)
	earlier.OwnerReferences[0].UID = "earlier"
	if _, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Create(t.Context(), earlier, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	if err := c.apply(t.Context(), plan.CreateBudget{MinAvailable: 2}); err != nil {
		t.Fatal(err)
	}
	if o, err := c.observe(t.Context()); err != nil || o.Budget.Written != 2 {
		t.Errorf("it is seen as %+v, %v", o.Budget, err)
	}
}

func TestABudgetEditedByHandComesBack(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	b := manifest.BuildBudget(c.obj, 2)
	b.Spec.Selector.MatchLabels, b.Spec.MinAvailable = map[string]string{"app": "x"}, nil
	b.Spec.MaxUnavailable = new(intstr.FromString("100%"))
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	if _, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := budgetOf(t, w, c)
	if seen.Edited != "maxUnavailable, selector" || seen.MinAvailable != 0 {
		t.Errorf("it is seen as %+v", seen)
	}
	if err := c.apply(t.Context(), plan.UpdateBudget{To: 2, Edited: seen.Edited}); err != nil {
		t.Fatal(err)
	}
	got := w.storedBudget()
	if manifest.MinAvailableOf(got) != 2 || got.Spec.MaxUnavailable != nil || !maps.Equal(got.Spec.Selector.MatchLabels, manifest.NamesOf(c.obj).Labels()) {
		t.Errorf("it is %v", got.Spec)
	}
	if got.Spec.UnhealthyPodEvictionPolicy == nil {
		t.Error("what the operator does not own is gone")
	}
	if !w.Told("Edit Undone: PodDisruptionBudget c") {
		t.Errorf("events %q", w.Events())
	}
}

func TestABudgetOfSomebodyElseIsLeftAlone(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	theirs := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}}
	if _, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context(), plan.CreateBudget{MinAvailable: 2}); err == nil || !w.Told("Disruption Budget Taken") {
		t.Errorf("error %v, events %q", err, w.Events())
	}
	if b := w.storedBudget(); b.Spec.MinAvailable != nil {
		t.Errorf("it was changed to %v", b)
	}
	if !budgetOf(t, w, c).PutOff {
		t.Error("it is tried again at once")
	}
	clock.Step(time.Minute)
	if budgetOf(t, w, c).PutOff {
		t.Error("it is never tried again")
	}
}
