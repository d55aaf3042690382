// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// server is an API server: it knows one namespace, and the API group of OpenShift or not.
type server struct {
	group       atomic.Int32 // the status code for the API group
	annotations map[string]string
	clock       *testingclock.FakePassiveClock
	namespaces  atomic.Int32 // requests for the namespace
	groups      atomic.Int32 // requests for the API group
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case apiGroup:
		s.groups.Add(1)
		w.WriteHeader(int(s.group.Load()))
		_, _ = w.Write([]byte("{}"))
	case "/api/v1/namespaces/ns":
		s.namespaces.Add(1)
		_ = json.NewEncoder(w).Encode(corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: s.annotations},
		})
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

func start(t *testing.T, s *server, group int) *Namespaces {
	t.Helper()
	s.group.Store(int32(group))
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.clock = testingclock.NewFakePassiveClock(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	return New(kube, s.clock)
}

func TestTheFirstIDsOfANamespaceAreTheMembers(t *testing.T) {
	for name, c := range map[string]struct {
		users, groups string
		user, fsGroup int64 // -1: none
	}{
		"as OpenShift writes them":       {"1000650000/10000", "1000660000/10000", 1000650000, 1000660000},
		"from and to":                    {"1000-1999", "2000-2999", 1000, 2000},
		"several ranges of groups":       {"1000/10", "5/1,9/1", 1000, 5},
		"groups are those of users":      {"1000650000/10000", "", 1000650000, 1000650000},
		"not annotated yet, or by error": {"", "", -1, -1},
		"no number":                      {"many", "-5", -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{annotations: map[string]string{usersAnnotation: c.users, groupsAnnotation: c.groups}}
			got, err := start(t, s, http.StatusOK).ReservedIDs(t.Context(), "ns")
			if user, fsGroup := ptr.Deref(got.User, -1), ptr.Deref(got.FSGroup, -1); err != nil || user != c.user || fsGroup != c.fsGroup {
				t.Errorf("user %d, fsGroup %d, error %v; want %d, %d", user, fsGroup, err, c.user, c.fsGroup)
			}
		})
	}
}

// Elsewhere, the annotations mean nothing, and the operator may have no right to read namespaces.
func TestOtherPlatformsAreAskedOnce(t *testing.T) {
	for _, group := range []int{http.StatusNotFound, http.StatusForbidden} {
		s := &server{annotations: map[string]string{usersAnnotation: "1000/10"}}
		n := start(t, s, group)
		for range 3 {
			if got, err := n.ReservedIDs(t.Context(), "ns"); err != nil || got.User != nil || got.FSGroup != nil {
				t.Errorf("%d: %+v, %v", group, got, err)
			}
		}
		if s.groups.Load() != 1 || s.namespaces.Load() != 0 {
			t.Errorf("%d: %d requests for the API group, %d for the namespace", group, s.groups.Load(), s.namespaces.Load())
		}
	}
}

// An API server that has just started refuses everything until it has read the roles. All later pods
// ran as a user that OpenShift refuses.
func TestARefusalDoesNotHoldForever(t *testing.T) {
	s := &server{annotations: map[string]string{usersAnnotation: "1000/10"}}
	n := start(t, s, http.StatusForbidden)
	if got, err := n.ReservedIDs(t.Context(), "ns"); err != nil || got.User != nil {
		t.Fatalf("an API server that refuses to answer reserves %+v, %v", got, err)
	}
	s.group.Store(http.StatusOK)
	s.clock.SetTime(s.clock.Now().Add(refusalHolds))
	if got, err := n.ReservedIDs(t.Context(), "ns"); err != nil || ptr.Deref(got.User, -1) != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
	s.group.Store(http.StatusForbidden) // another API server has just started
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	if got, err := n.ReservedIDs(t.Context(), "ns"); err != nil || ptr.Deref(got.User, -1) != 1000 {
		t.Errorf("an OpenShift is forgotten: %+v, %v", got, err)
	}
}

// A pod that was built on a guess would be refused, or run as the wrong user.
func TestAnAPIServerThatFailsIsAskedAgain(t *testing.T) {
	s := &server{annotations: map[string]string{usersAnnotation: "1000/10"}}
	n := start(t, s, http.StatusInternalServerError)
	if got, err := n.ReservedIDs(t.Context(), "ns"); err == nil {
		t.Fatalf("an API server that fails reserves %+v", got)
	}
	s.group.Store(http.StatusOK)
	if got, err := n.ReservedIDs(t.Context(), "ns"); err != nil || ptr.Deref(got.User, -1) != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := n.ReservedIDs(t.Context(), "other"); err == nil {
		t.Errorf("a namespace that the operator may not read reserves %+v", got)
	}
}
