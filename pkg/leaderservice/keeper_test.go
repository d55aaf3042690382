// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderservice

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const name = "etcd-restore-operator"

func ownPod(podName string, ips ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: "ns", UID: types.UID("uid-of-" + podName)}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	for i, ip := range ips {
		if i == 0 {
			p.Status.PodIP = ip
		}
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return p
}

func keeperOf(kube *fake.Clientset, podName string) *Keeper {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return New(Config{
		Kube: kube, Namespace: "ns", Name: name, Pod: podName, Port: 19999, ListenPort: 29999,
		APIServer: "127.0.0.1:6443", Logger: logrus.NewEntry(logger),
	})
}

func keep(t *testing.T, k *Keeper) {
	t.Helper()
	if err := k.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func serviceOf(t *testing.T, kube *fake.Clientset) *corev1.Service {
	t.Helper()
	s, err := kube.CoreV1().Services("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func slicesOf(t *testing.T, kube *fake.Clientset) []discoveryv1.EndpointSlice {
	t.Helper()
	list, err := kube.DiscoveryV1().EndpointSlices("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// leadsTo fails the test unless there is one slice, which leads to one address.
func leadsTo(t *testing.T, kube *fake.Clientset, address string) {
	t.Helper()
	list := slicesOf(t, kube)
	if len(list) != 1 || len(list[0].Endpoints) != 1 || !slices.Equal(list[0].Endpoints[0].Addresses, []string{address}) {
		t.Errorf("there are the slices %+v, want one that leads to %s", list, address)
		return
	}
	s := list[0]
	if s.Labels["kubernetes.io/service-name"] != name || s.Labels["endpointslice.kubernetes.io/managed-by"] != manager {
		t.Errorf("labels %v", s.Labels)
	}
	if ready := s.Endpoints[0].Conditions.Ready; ready == nil || !*ready {
		t.Errorf("ready %v", ready)
	}
	if len(s.Ports) != 1 || *s.Ports[0].Name != "http" || *s.Ports[0].Port != 29999 {
		t.Errorf("ports %+v", s.Ports)
	}
}

// writes are the calls since the last reset that change something.
func writes(kube *fake.Clientset) (verbs []string) {
	for _, a := range kube.Actions() {
		if !slices.Contains([]string{"get", "list"}, a.GetVerb()) {
			verbs = append(verbs, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	return verbs
}

func TestTheServiceIsMadeAndLeadsToTheLeader(t *testing.T) {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
	k := keeperOf(kube, "one")
	keep(t, k)
	s := serviceOf(t, kube)
	if p := s.Spec.Ports; len(p) != 1 || p[0].Port != 19999 || p[0].Name != "http" || s.Spec.Selector != nil || s.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("spec %+v", s.Spec)
	}
	if len(s.OwnerReferences) > 0 || s.Labels["app"] != name {
		t.Errorf("owners %v, labels %v", s.OwnerReferences, s.Labels)
	}
	leadsTo(t, kube, "10.0.0.1")
	if ref := slicesOf(t, kube)[0].Endpoints[0].TargetRef; ref == nil || ref.Name != "one" || ref.UID != "uid-of-one" {
		t.Errorf("target %v", ref)
	}

	kube.ClearActions()
	keep(t, k)
	if w := writes(kube); len(w) > 0 {
		t.Errorf("wrote %v though all is well", w)
	}

	// Another one leads.
	if err := kube.Tracker().Add(ownPod("two", "10.0.0.2")); err != nil {
		t.Fatal(err)
	}
	keep(t, keeperOf(kube, "two"))
	leadsTo(t, kube, "10.0.0.2")
}

func TestWhatWasEditedIsPutRight(t *testing.T) {
	type stage struct {
		service *corev1.Service
		slice   *discoveryv1.EndpointSlice
	}
	for about, edit := range map[string]func(*stage){
		"the port": func(s *stage) { s.service.Spec.Ports[0].Port = 80 },
		"a second port": func(s *stage) {
			s.service.Spec.Ports = append(s.service.Spec.Ports, corev1.ServicePort{Name: "x", Port: 1})
		},
		"the type":              func(s *stage) { s.service.Spec.Type = corev1.ServiceTypeLoadBalancer },
		"an external address":   func(s *stage) { s.service.Spec.ExternalIPs = []string{"1.2.3.4"} },
		"the label":             func(s *stage) { s.service.Labels = nil },
		"the slice's addresses": func(s *stage) { s.slice.Endpoints[0].Addresses = []string{"10.6.6.6"} },
		"no endpoint":           func(s *stage) { s.slice.Endpoints = nil },
		"not ready":             func(s *stage) { *s.slice.Endpoints[0].Conditions.Ready = false },
		"the slice's port":      func(s *stage) { *s.slice.Ports[0].Port = 1 },
		"the slice's manager":   func(s *stage) { s.slice.Labels["endpointslice.kubernetes.io/managed-by"] = "somebody" },
		"the slice's Service":   func(s *stage) { s.slice.Labels["kubernetes.io/service-name"] = "another" },
		"the slice's owner":     func(s *stage) { s.slice.OwnerReferences = []metav1.OwnerReference{{Name: "x", UID: "x"}} },
	} {
		kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
		k := keeperOf(kube, "one")
		keep(t, k)
		s := &stage{serviceOf(t, kube), &slicesOf(t, kube)[0]}
		right := &stage{s.service.DeepCopy(), s.slice.DeepCopy()}
		edit(s)
		if _, err := kube.CoreV1().Services("ns").Update(t.Context(), s.service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := kube.DiscoveryV1().EndpointSlices("ns").Update(t.Context(), s.slice, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		kube.ClearActions()
		keep(t, k)
		if w := writes(kube); len(w) == 0 {
			t.Errorf("%s: nothing was corrected", about)
		}
		leadsTo(t, kube, "10.0.0.1")
		if slicesOf(t, kube)[0].OwnerReferences != nil {
			t.Errorf("%s: the slice has an owner", about)
		}
		if got := serviceOf(t, kube); !equality.Semantic.DeepEqual(got.Spec, right.service.Spec) || !maps.Equal(got.Labels, right.service.Labels) {
			t.Errorf("%s: the Service is %+v, want %+v", about, got, right.service)
		}
		got := slicesOf(t, kube)[0]
		if !equality.Semantic.DeepEqual(got.Endpoints, right.slice.Endpoints) || !equality.Semantic.DeepEqual(got.Ports, right.slice.Ports) || !maps.Equal(got.Labels, right.slice.Labels) {
			t.Errorf("%s: the slice is %+v, want %+v", about, got, right.slice)
		}
	}
}

func TestWhatWasDeletedIsMadeAgain(t *testing.T) {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
	k := keeperOf(kube, "one")
	keep(t, k)
	if err := kube.CoreV1().Services("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := kube.DiscoveryV1().EndpointSlices("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	keep(t, k)
	serviceOf(t, kube)
	leadsTo(t, kube, "10.0.0.1")
}

func TestOthersDoNotSayWhereItLeads(t *testing.T) {
	other := func(sliceName, manager string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: sliceName, Namespace: "ns", Labels: map[string]string{
				"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": manager,
			}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.6.6.6"}}},
		}
	}
	beside := other("beside", "x")
	beside.Labels["kubernetes.io/service-name"] = "beside"
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"), beside,
		other(name+"-abcde", "endpointslice-controller.k8s.io"), other(name+"-mirror", mirroring), other("by-hand", "staff"),
		&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}, //nolint:staticcheck // they are deprecated, and mirrored
	)
	keep(t, keeperOf(kube, "one"))
	if list := slicesOf(t, kube); len(list) != 2 || list[0].Name != "beside" || list[1].Name != name {
		t.Errorf("there are %+v", list)
	}
	if _, err := kube.CoreV1().Endpoints("ns").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Endpoints that are mirrored: %v", err)
	}
}

func TestAServiceOfSomebodyElseIsLeftAlone(t *testing.T) {
	for about, change := range map[string]func(*corev1.Service){
		"metrics of the operator's pods": func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 },
		"two ports": func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 8080})
		},
		"other pods":                func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} },
		"labels of its own":         func(s *corev1.Service) { s.Labels = map[string]string{"app.kubernetes.io/name": "x"} },
		"no labels":                 func(s *corev1.Service) { s.Labels = nil },
		"our label, and other pods": func(s *corev1.Service) { s.Labels = map[string]string{"app": name} },
	} {
		s := serviceOfV094()
		change(s)
		kube := fake.NewClientset(ownPod("one", "10.0.0.1"), s)
		err := keeperOf(kube, "one").Keep(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the Service "+name+" is somebody else's") || errors.Is(err, errAgain) {
			t.Errorf("%s: %v", about, err)
		}
		if w := writes(kube); len(w) > 0 {
			t.Errorf("%s: wrote %v", about, w)
		}
	}
}

func TestASelectorThatSomebodyGaveOursIsTakenAway(t *testing.T) {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
	k := keeperOf(kube, "one")
	keep(t, k)
	s := serviceOf(t, kube)
	s.Spec.Selector = map[string]string{"name": "elsewhere"}
	if _, err := kube.CoreV1().Services("ns").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := k.Keep(t.Context()); !errors.Is(err, errAgain) {
		t.Fatalf("got %v", err)
	}
	keep(t, k)
	if s := serviceOf(t, kube); len(s.Spec.Selector) > 0 {
		t.Errorf("there is %+v", s)
	}
}

// serviceOfV094 is as v0.9.4 makes it, beside a Deployment by its example.
func serviceOfV094() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "old", Labels: map[string]string{"name": name}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"name": name}, Ports: []corev1.ServicePort{{Port: 19999}}},
	}
}

func TestTheServiceOfV094IsMadeAnew(t *testing.T) {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"), serviceOfV094())
	k := keeperOf(kube, "one")
	if err := k.Keep(t.Context()); !errors.Is(err, errAgain) {
		t.Fatalf("got %v", err)
	}
	deletions := 0
	for _, a := range kube.Actions() {
		d, ok := a.(clienttesting.DeleteActionImpl)
		if !ok {
			continue
		}
		deletions++
		if p := d.DeleteOptions.Preconditions; d.GetResource().Resource != "services" || p == nil || p.UID == nil || *p.UID != "old" {
			t.Errorf("%s were deleted with %+v", d.GetResource().Resource, d.DeleteOptions)
		}
	}
	if deletions != 1 {
		t.Errorf("%d deletions, want that of the old Service", deletions)
	}
	keep(t, k)
	if s := serviceOf(t, kube); s.UID == "old" || len(s.Spec.Selector) > 0 {
		t.Errorf("there is %+v", s)
	}
	leadsTo(t, kube, "10.0.0.1")
}

func TestTheAddressIsOfTheServicesFamily(t *testing.T) {
	for _, c := range []struct {
		families []corev1.IPFamily
		ips      []string
		want     string
		kind     discoveryv1.AddressType
	}{
		{nil, []string{"10.0.0.1"}, "10.0.0.1", discoveryv1.AddressTypeIPv4},
		{nil, []string{"fd00::1"}, "fd00::1", discoveryv1.AddressTypeIPv6},
		{[]corev1.IPFamily{"IPv6"}, []string{"10.0.0.1", "fd00::1"}, "fd00::1", discoveryv1.AddressTypeIPv6},
		{[]corev1.IPFamily{"IPv4", "IPv6"}, []string{"fd00::1", "10.0.0.1"}, "10.0.0.1", discoveryv1.AddressTypeIPv4},
		{[]corev1.IPFamily{"IPv6"}, []string{"10.0.0.1"}, "10.0.0.1", discoveryv1.AddressTypeIPv4},
	} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.ServiceSpec{IPFamilies: c.families}}
		// A former leader of the other kind.
		former := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"kubernetes.io/service-name": name}},
			AddressType: map[discoveryv1.AddressType]discoveryv1.AddressType{"IPv4": "IPv6", "IPv6": "IPv4"}[c.kind],
		}
		kube := fake.NewClientset(ownPod("one", c.ips...), service, former)
		keep(t, keeperOf(kube, "one"))
		leadsTo(t, kube, c.want)
		if got := slicesOf(t, kube)[0].AddressType; got != c.kind {
			t.Errorf("%v with %v: %s", c.families, c.ips, got)
		}
	}
}

func TestAnInstanceWithoutAnAddressSaysSo(t *testing.T) {
	for want, kube := range map[string]*fake.Clientset{
		"has no address yet": fake.NewClientset(ownPod("one")),
		"is reached from 127.0.0.1, where no pod reaches this":    fake.NewClientset(),
		"read the operator's own pod ns/one: pods is not allowed": forbidding("get", "pods"),
	} {
		if err := keeperOf(kube, "one").Keep(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if w := writes(kube); len(w) > 0 {
			t.Errorf("wrote %v", w)
		}
	}
}

func forbidding(verb, resource string) *fake.Clientset {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
	kube.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New(resource + " is not allowed")
	})
	return kube
}

func TestTheAPIServersAddressHasAPort(t *testing.T) {
	for text, want := range map[string]string{
		"https://10.0.0.1": "10.0.0.1:443", "http://host": "host:80", "https://[fd00::1]:6443/prefix": "[fd00::1]:6443",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostPort(u); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if _, _, err := net.SplitHostPort(want); err != nil {
			t.Error(err)
		}
	}
}

func TestTheServiceIsKeptWhileThisInstanceLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(ownPod("one", "10.0.0.1"))
		var up atomic.Bool
		kube.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !up.Load(), nil, errors.New("down")
		})
		k := keeperOf(kube, "one")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			k.Run(ctx)
		}()
		synctest.Wait()
		if err := k.Problem(); err == nil || !strings.Contains(err.Error(), "create Service "+name+": down") {
			t.Errorf("problem %v", err)
		}
		up.Store(true)
		time.Sleep(firstRetry)
		synctest.Wait()
		if err := k.Problem(); err != nil {
			t.Errorf("problem %v", err)
		}
		leadsTo(t, kube, "10.0.0.1")

		if err := kube.DiscoveryV1().EndpointSlices("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkInterval)
		synctest.Wait()
		leadsTo(t, kube, "10.0.0.1")

		cancel()
		<-ended
		if list := slicesOf(t, kube); len(list) > 0 {
			t.Errorf("the address is still there: %+v", list)
		}
	})
}

func TestTheNextLeadersAddressIsLeftAlone(t *testing.T) {
	kube := fake.NewClientset(ownPod("one", "10.0.0.1"), ownPod("two", "10.0.0.2"))
	former, next := keeperOf(kube, "one"), keeperOf(kube, "two")
	keep(t, former)
	keep(t, next)
	former.leave(t.Context())
	leadsTo(t, kube, "10.0.0.2")
}
