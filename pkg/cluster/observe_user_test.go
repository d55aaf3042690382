// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
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

	lets *etcd.Credentials // zero: everybody
	user *etcd.Credentials
	of   **Cluster // that asks them
}

// edit edits spec.auth.
func (g guarded) edit(w *world, change func(*api.AuthPolicy)) {
	(*g.of).take(w.edit(func(obj *api.EtcdCluster) { change(obj.Spec.Auth) }))
}

func (g guarded) SetCredentials(user etcd.Credentials) {
	*g.user = user
	g.guard()
}

// guard makes the members answer the user as they would.
func (g guarded) guard() {
	var refusal error
	switch user := *g.user; {
	case user == *g.lets, *g.lets == (etcd.Credentials{}):
	case user == etcd.Credentials{}:
		refusal = fmt.Errorf("status: %w", rpctypes.ErrUserEmpty)
	default:
		refusal = fmt.Errorf("status: %w", rpctypes.ErrAuthFailed)
	}
	for _, m := range g.fakeMembers {
		m.refusal, m.guarded = refusal, g
		if m.certified {
			m.refusal, m.position = nil, etcd.Position{}
			switch {
			case errors.Is(refusal, rpctypes.ErrUserEmpty):
				m.position.Refusal = rpctypes.ErrPermissionDenied
			case refusal != nil:
				m.position.Refusal = rpctypes.ErrAuthFailed
			}
		}
	}
}

func (m *fakeMember) AuthEnabled(context.Context) (bool, error) {
	m.authAsked++
	return *m.guarded.lets != etcd.Credentials{}, errors.Join(m.refusal, m.authUnknown)
}

func (m *fakeMember) EnableAuth(_ context.Context, password string) error {
	return m.guarded.let(m, etcd.Credentials{Username: "root", Password: password})
}

func (m *fakeMember) DisableAuth(context.Context) error {
	return m.guarded.let(m, etcd.Credentials{})
}

func (m *fakeMember) ChangePassword(_ context.Context, user etcd.Credentials) error {
	return m.guarded.let(m, user)
}

// errAnswerLost is the error of a change that took effect.
var errAnswerLost = errors.New("the answer is lost")

func (g guarded) let(m *fakeMember, user etcd.Credentials) error {
	if err := cmp.Or(m.refusal, m.position.Refusal); err != nil {
		return err
	}
	*g.lets = user
	g.guard()
	if m.losesAnswers {
		return errAnswerLost
	}
	return nil
}

// guardedCluster returns a cluster whose members let only root in, and how to look at it.
func guardedCluster(t *testing.T, auth *api.AuthPolicy) (w *world, members guarded, pass func(after time.Duration) (plan.Step, api.ClusterStatus)) {
	t.Helper()
	obj := testCluster()
	obj.Spec.Auth, obj.Status = auth, runningStatus()
	obj.Status.Size = 3
	clock := clocktesting.NewFakeClock(noon)
	w = newWorld(t, clock, obj)
	members = guarded{fakeMembers{}, &etcd.Credentials{Username: "root", Password: "right"}, &etcd.Credentials{}, new(*Cluster)}
	members.join(t, w, "a", "b", "c")
	w.cfg.Members = func() Members { return members }
	members.SetCredentials(etcd.Credentials{})
	c := w.cluster(obj)
	*members.of = c
	return w, members, func(after time.Duration) (plan.Step, api.ClusterStatus) {
		t.Helper()
		clock.Step(after)
		var s plan.Step
		for range 40 {
			var err error
			if s, err = c.pass(t.Context()); err != nil && !errors.Is(err, errAnswerLost) {
				t.Fatalf("%s: %v", s, err)
			}
			clock.Step(time.Millisecond)
			w.watch()
			switch s.(type) {
			case plan.Idle, plan.Wait, plan.WaitForPod:
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

func TestAuthenticationFollowsTheSpec(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		t.Run(fmt.Sprintf("answers are lost: %t", lossy), func(t *testing.T) {
			w, members, pass := guardedCluster(t, &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)})
			*members.lets = etcd.Credentials{} // authentication is disabled
			members.guard()
			for _, m := range members.fakeMembers {
				m.losesAnswers = lossy
			}
			w.put(userSecret("root", "first"))
			state := func(when string, lets etcd.Credentials) {
				t.Helper()
				pass(certPeriod)
				_, st := pass(certPeriod)
				if available := st.Condition(api.ClusterConditionAvailable); *members.lets != lets || available.Status != corev1.ConditionTrue || st.Reason != "" {
					t.Fatalf("%s: etcd lets %#v in, as %s; %+v, reason %q", when, *members.lets, members.lets.Password, available, st.Reason)
				}
			}
			state("enabled", etcd.Credentials{Username: "root", Password: "first"})
			w.put(userSecret("root", "second"))
			state("with another password", etcd.Credentials{Username: "root", Password: "second"})

			// Somebody has changed both, in etcd first.
			*members.lets = etcd.Credentials{Username: "root", Password: "third"}
			members.guard()
			w.put(userSecret("root", "third"))
			state("with a password that somebody has set", etcd.Credentials{Username: "root", Password: "third"})

			members.edit(w, func(a *api.AuthPolicy) { a.Enabled = new(false) })
			state("disabled", etcd.Credentials{})
		})
	}
}

// etcd enables authentication only with a user root.
func TestAuthenticationNeedsTheUserRoot(t *testing.T) {
	for name, c := range map[string]struct {
		secret *corev1.Secret
		says   string
	}{
		"another user": {userSecret("app", "p"), "spec.auth.enabled needs the user root"},
		"no Secret":    {nil, "does not exist: create it"},
	} {
		w, members, pass := guardedCluster(t, &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)})
		*members.lets = etcd.Credentials{}
		members.guard()
		if c.secret != nil {
			w.put(c.secret)
		}
		pass(certPeriod)
		if _, st := pass(certPeriod); *members.lets != (etcd.Credentials{}) || !strings.Contains(st.Reason, c.says) || st.Condition(api.ClusterConditionAvailable).Status != corev1.ConditionTrue {
			t.Errorf("%s: etcd lets %s in, reason %q", name, members.lets, st.Reason)
		}
	}
}

// Somebody may change the Secret while etcd has no quorum. etcd then still has the former password,
// without which the operator could not change it.
func TestAPasswordThatChangesWithoutAQuorumIsFollowed(t *testing.T) {
	w, members, pass := guardedCluster(t, &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)})
	*members.lets = etcd.Credentials{Username: "root", Password: "first"}
	members.guard()
	w.put(userSecret("root", "first"))
	pass(certPeriod)
	pass(certPeriod)
	for _, m := range members.fakeMembers {
		m.refusal = rpctypes.ErrGRPCNoLeader
	}
	pass(time.Second)
	w.put(userSecret("root", "second"))
	pass(certPeriod)
	members.guard() // the quorum is back
	pass(certPeriod)
	want := etcd.Credentials{Username: "root", Password: "second"}
	if _, st := pass(certPeriod); *members.lets != want || *members.user != want || st.Reason != "" {
		t.Errorf("etcd has the password %s, the operator %s, reason %q", members.lets.Password, members.user.Password, st.Reason)
	}
}

// While etcd refuses the operator, somebody may have changed the password there. The Secret that
// changes next then has the one to log in with.
func TestAPasswordThatChangesInEtcdFirstIsUsed(t *testing.T) {
	w, members, pass := guardedCluster(t, &api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)})
	*members.lets = etcd.Credentials{Username: "root", Password: "first"}
	members.guard()
	w.put(userSecret("root", "first"))
	pass(certPeriod)
	pass(certPeriod)
	*members.lets = etcd.Credentials{Username: "root", Password: "second"}
	members.guard()
	if _, st := pass(certPeriod); !strings.Contains(st.Reason, "etcd refuses the user") {
		t.Fatalf("the reason is %q", st.Reason)
	}
	w.put(userSecret("root", "second"))
	if _, st := pass(certRetry); *members.user != *members.lets || st.Reason != "" {
		t.Errorf("the operator has the password %s, reason %q", members.user.Password, st.Reason)
	}
}

// With TLS, etcd takes the name in the certificate as the user. It shows its members to a stranger, and refuses
// all else. The operator sees a quorum, and could replace no member.
func TestWithTLSTheStatusSaysThatTheOperatorHasNoUser(t *testing.T) {
	for name, c := range map[string]struct {
		auth   *api.AuthPolicy
		secret *corev1.Secret
		says   string
	}{
		"nobody":           {nil, nil, "spec.auth names no user: create a Secret with the keys username and password"},
		"no Secret":        {&api.AuthPolicy{CredentialsSecret: "login"}, nil, "Secret login (spec.auth.credentialsSecret) does not exist: create it"},
		"a wrong password": {&api.AuthPolicy{CredentialsSecret: "login"}, userSecret("root", "wrong"), "etcd refuses the user in Secret login"},
		"a wrong password with which to enable authentication": {
			&api.AuthPolicy{CredentialsSecret: "login", Enabled: new(true)}, userSecret("root", "wrong"), "etcd refuses the user in Secret login",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, members, pass := guardedCluster(t, c.auth)
			if c.secret != nil {
				w.put(c.secret)
			}
			for _, m := range members.fakeMembers {
				m.certified = true
			}
			members.guard()
			for range 3 {
				_, st := pass(certPeriod)
				if !strings.Contains(st.Reason, "the operator can't log in to etcd: ") || !strings.Contains(st.Reason, c.says) {
					t.Fatalf("the reason is %q", st.Reason)
				}
				if stalled, available := st.Condition("Stalled"), st.Condition(api.ClusterConditionAvailable); stalled.Reason != "LoginRefused" || available.Status != corev1.ConditionTrue {
					t.Fatalf("Stalled is %+v, Available %+v", stalled, available)
				}
			}
			if c.auth == nil {
				return
			}
			w.put(userSecret("root", "right"))
			if _, st := pass(certRetry); *members.user != *members.lets || st.Reason != "" {
				t.Errorf("with the right password, the operator logs in with %q, and the reason is %q", members.user.Password, st.Reason)
			}
		})
	}
}
