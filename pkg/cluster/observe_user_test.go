// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// guarded are members that let one user in.
type guarded struct {
	fakeMembers

	lets etcd.Credentials
	user *etcd.Credentials
}

func (g guarded) SetCredentials(user etcd.Credentials) {
	*g.user = user
	var refusal error
	switch user {
	case g.lets:
	case etcd.Credentials{}:
		refusal = fmt.Errorf("status: %w", rpctypes.ErrUserEmpty)
	default:
		refusal = fmt.Errorf("status: %w", rpctypes.ErrAuthFailed)
	}
	for _, m := range g.fakeMembers {
		m.refusal = refusal
	}
}

// guardedCluster returns a cluster whose members let only root in, and how to look at it.
func guardedCluster(t *testing.T, auth *api.AuthPolicy) (w *world, members guarded, pass func(after time.Duration) (plan.Step, api.ClusterStatus)) {
	t.Helper()
	obj := testCluster()
	obj.Spec.Auth, obj.Status = auth, runningStatus()
	obj.Status.Size = 3
	clock := clocktesting.NewFakeClock(noon)
	w = newWorld(t, clock, obj)
	members = guarded{fakeMembers{}, etcd.Credentials{Username: "root", Password: "right"}, &etcd.Credentials{}}
	members.join(t, w, "a", "b", "c")
	w.cfg.Members = func() Members { return members }
	members.SetCredentials(etcd.Credentials{})
	c := w.cluster(obj)
	return w, members, func(after time.Duration) (plan.Step, api.ClusterStatus) {
		t.Helper()
		clock.Step(after)
		var s plan.Step
		for range 10 {
			var err error
			if s, err = c.pass(t.Context()); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			w.watch()
			switch s.(type) {
			case plan.Idle, plan.Wait:
				return s, w.etcdCluster().Status
			}
		}
		t.Fatalf("the operator is still busy: %s", s)
		return nil, api.ClusterStatus{}
	}
}

func userSecret(name, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "ns", UID: "u", ResourceVersion: password},
		Data:       map[string][]byte{"username": []byte(name), "password": []byte(password)},
	}
}

// Without a user, nothing is wrong with the cluster: clients are served, and the status says
// what the operator needs. It removes nobody.
func TestWithoutAUserTheOperatorRaisesNoFalseAlarm(t *testing.T) {
	for name, c := range map[string]struct {
		auth   *api.AuthPolicy
		secret *corev1.Secret
		says   string
	}{
		"nobody":           {nil, nil, "spec.auth names no user: create a Secret with the keys username and password"},
		"no Secret":        {&api.AuthPolicy{CredentialsSecret: "login"}, nil, "Secret login (spec.auth.credentialsSecret) does not exist: create it"},
		"half a Secret":    {&api.AuthPolicy{CredentialsSecret: "login"}, userSecret("", "wrong"), "Secret login lacks username"},
		"a wrong password": {&api.AuthPolicy{CredentialsSecret: "login"}, userSecret("root", "wrong"), "etcd refuses the user in Secret login"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, pass := guardedCluster(t, c.auth)
			if c.secret != nil {
				w.put(c.secret)
			}
			for range 30 {
				step, st := pass(time.Minute)
				if step.String() != "wait: for a quorum" {
					t.Fatalf("the operator's step is %s", step)
				}
				available := st.Condition(api.ClusterConditionAvailable)
				if available.Status != corev1.ConditionUnknown || !strings.Contains(available.Message, "3 of 3 ready") {
					t.Fatalf("Available is %+v", available)
				}
				if !strings.Contains(st.Reason, "the operator can't log in to etcd: ") || !strings.Contains(st.Reason, c.says) {
					t.Fatalf("the reason is %q", st.Reason)
				}
				if stalled := st.Condition("Stalled"); stalled.Reason != "LoginRefused" {
					t.Fatalf("Stalled is %+v", stalled)
				}
				if text := fmt.Sprintf("%+v", st); strings.Contains(text, "wrong") {
					t.Fatalf("the password is in the status: %s", text)
				}
			}
		})
	}
}

func TestTheOperatorLogsInAsTheUserInTheSecret(t *testing.T) {
	w, members, pass := guardedCluster(t, &api.AuthPolicy{CredentialsSecret: "login"})
	if _, st := pass(0); !strings.Contains(st.Reason, "does not exist") {
		t.Fatalf("there is no Secret: %q", st.Reason)
	}
	w.put(userSecret("root", "wrong"))
	if _, st := pass(certRetry); !strings.Contains(st.Reason, "etcd refuses") {
		t.Errorf("with the wrong password: %q", st.Reason)
	}
	w.put(userSecret("root", "right"))
	if pass(certRetry / 2); members.user.Password != "wrong" {
		t.Error("the Secret is read more often than every five seconds")
	}
	serves := func(when string) {
		t.Helper()
		_, st := pass(certRetry)
		if available := st.Condition(api.ClusterConditionAvailable); available.Status != corev1.ConditionTrue || st.Reason != "" {
			t.Errorf("%s: %+v, reason %q", when, available, st.Reason)
		}
	}
	serves("with the user")
	gets := w.count("get", "secrets")
	if pass(certRetry); w.count("get", "secrets") != gets {
		t.Error("a Secret that works is read more often than every 30 seconds")
	}
	// What is in use stays if the Secret goes.
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "ns", "login"); err != nil {
		t.Fatal(err)
	}
	pass(certPeriod)
	serves("without the Secret")
}
