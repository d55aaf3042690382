// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// newGuardedCluster returns a new cluster of one member, which serves, and whose spec asks for
// authentication. run makes passes for a while.
func newGuardedCluster(t *testing.T, version string) (w *world, members guarded, run func(time.Duration) api.ClusterStatus) {
	t.Helper()
	obj := testCluster()
	obj.Spec.Size, obj.Spec.Version, obj.Spec.Auth = 1, version, &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)}
	obj.Status = api.ClusterStatus{Phase: api.ClusterPhaseCreating, Members: api.MembersStatus{Unready: []string{"a"}}}
	clock := clocktesting.NewFakeClock(noon)
	w = newWorld(t, clock, obj)
	members = guarded{fakeMembers{}, &etcd.Credentials{}, &etcd.Credentials{}, new(*Cluster)}
	members.join(t, w, "a")
	members.fakeMembers["a"].says[0].Version = version
	w.editPod("a", func(pod *corev1.Pod) {
		made := memberPod(t, obj, "a")
		pod.Annotations, pod.Spec = made.Annotations, made.Spec
	})
	w.cfg.Members = func() Members { return members }
	members.SetCredentials(etcd.Credentials{})
	c := w.cluster(obj)
	*members.of = c
	return w, members, func(d time.Duration) api.ClusterStatus {
		t.Helper()
		for end := clock.Now().Add(d); clock.Now().Before(end); clock.Step(time.Second) {
			w.watch()
			if s, err := c.pass(t.Context()); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			w.watch()
			if _, there, err := w.services.GetByKey("ns/c-client"); err != nil || there && *members.lets == (etcd.Credentials{}) {
				t.Fatalf("the client Service exists before authentication is enabled; %v", err)
			}
		}
		return w.etcdCluster().Status
	}
}

// A new cluster has no client Service before authentication is enabled: nobody gets in without
// a user.
func TestANewClusterServesClientsOnlyWithAuthentication(t *testing.T) {
	for name, c := range map[string]struct {
		wrong   *corev1.Secret // at first; nil: there is none
		unknown error
		version string
		says    string
		stalled bool
	}{
		"no Secret":      {nil, nil, "", "etcd lets clients in without a user. Secret login (spec.auth.credentialsSecret) does not exist: create it", true},
		"half a Secret":  {userSecret("", "wrong"), nil, "", "Secret login lacks username", true},
		"another user":   {userSecret("app", "wrong"), nil, "", "spec.auth.enabled needs the user root", true},
		"etcd is slow":   {userSecret("root", "p"), errors.New("deadline exceeded"), "", "for etcd to say whether authentication is enabled", false},
		"etcd can't say": {userSecret("root", "p"), nil, "3.4.30", "etcd 3.4.30 can't say whether authentication is enabled: set spec.version to 3.5 or later", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, members, run := newGuardedCluster(t, cmp.Or(c.version, "3.6.16"))
			m := members.fakeMembers["a"]
			m.authUnknown = c.unknown
			if c.wrong != nil {
				w.put(c.wrong)
			}
			st := run(2 * time.Minute)
			if !strings.Contains(st.Reason, c.says) || conditionIsTrue(&st, api.ConditionReady) || st.ServiceName != "" {
				t.Errorf("the reason is %q, Service %q, Ready %+v", st.Reason, st.ServiceName, st.Condition(api.ConditionReady))
			}
			if stalled := st.Condition(api.ConditionStalled); (stalled.Reason == "AuthenticationHeld") != c.stalled || strings.Contains(st.Reason, "log in") {
				t.Errorf("Stalled is %+v, reason %q", stalled, st.Reason)
			}
			w.put(userSecret("root", "right"))
			m.authUnknown = nil
			if c.version != "" {
				return // it stays
			}
			if st := run(time.Minute); members.lets.Password == "" || st.ServiceName != "c-client" || st.Reason != "" {
				t.Errorf("etcd lets %s in, Service %q, reason %q", members.lets.Username, st.ServiceName, st.Reason)
			}
		})
	}
}

// Clients of a cluster that has its client Service keep it, and get a deleted one back.
func TestAClientServiceStaysWithoutAuthentication(t *testing.T) {
	obj := testCluster()
	obj.Spec.Auth = &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)}
	o := &plan.Observation{Spec: obj.Spec, Quorum: true, ClientService: plan.OwnedObject{Name: "c-client"}}
	if s := plan.KeepClientService(o); s != nil {
		t.Errorf("in a new cluster: %s", s)
	}
	o.Status.ServiceName = "c-client"
	if _, creates := plan.KeepClientService(o).(plan.CreateService); !creates {
		t.Error("somebody has deleted the client Service, and it does not come back")
	}
	o.Status.ServiceName, o.Spec.Auth.Enabled = "", new(false)
	if _, creates := plan.KeepClientService(o).(plan.CreateService); !creates {
		t.Error("nobody wants authentication, and there is no client Service")
	}
}

// Releases before 3.5 do not know the question. A member of such a release would crash on the
// log entry of a later one.
func TestMembersBefore35AreNotAskedForAuthentication(t *testing.T) {
	w, members, run := newGuardedCluster(t, "3.4.30")
	w.put(userSecret("root", "p"))
	m := members.fakeMembers["a"]
	if run(time.Minute); m.authAsked > 0 {
		t.Errorf("it was asked %d times", m.authAsked)
	}
}

// A failure to read the Secret says nothing about it. Authentication was enabled with an empty
// password.
func TestAnUnreadSecretEnablesNoAuthentication(t *testing.T) {
	w, members, run := newGuardedCluster(t, "3.6.16")
	run(10 * time.Second)
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("etcd of Kubernetes is down"))
	})
	if st := run(time.Minute); *members.user != (etcd.Credentials{}) || *members.lets != (etcd.Credentials{}) || !strings.Contains(st.Reason, "does not exist") {
		t.Errorf("the reason is %q", st.Reason)
	}
}
