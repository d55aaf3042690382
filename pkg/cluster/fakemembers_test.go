// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// fakeMembers are the members of the cluster c, by the names of their pods. The test
// sets their answers.
type fakeMembers map[string]*fakeMember

// fakeMember is one of them. It panics on a call that it has no answer to.
type fakeMember struct {
	Member

	says    []etcd.Status // one answer after the other; the last one stays
	refusal error         // is the answer instead of a status
	guarded guarded       // lets users in
	// certified is true if clients have certificates: it shows its status to strangers too, and refuses them reads.
	certified bool
	// losesAnswers is true if changes of users take effect and time out.
	losesAnswers bool
	// authUnknown is the answer to the question whether it lets only users in; nil: it says so.
	authUnknown error
	authAsked   int
	stalled     error // is the answer to a linearizable read
	// position comes with a confirmed read. While it is zero, no look replaces a pass.
	position etcd.Position
	removal  error // is the answer to the removal of a member
	agreed   []etcd.Member
	// remembered is the membership that it knows without a quorum.
	remembered []etcd.Member
	// metrics are what it states there, if it serves no clients.
	metrics *etcd.Status
	// served is what the container that serves its data states; nil: it does not answer.
	served *etcd.Status
}

func (f fakeMembers) Conn(ep etcd.Endpoint) (Member, error) {
	n := manifest.Names{Namespace: "ns", Cluster: "c"}
	for name, m := range f {
		switch {
		case ep.URL == n.ClientURL(name):
			return m, nil
		case ep.URL == n.DataURL(name) && m.served != nil:
			return &fakeMember{says: []etcd.Status{*m.served}}, nil
		}
	}
	return nil, errors.New("no such member")
}

func (fakeMembers) Retain(map[etcd.Endpoint]bool) {}

func (fakeMembers) SetTLS(*tls.Config) {}

func (fakeMembers) SetCredentials(etcd.Credentials) {}

func (fakeMembers) Close() {}

func (fakeMembers) CopiesDatabase(context.Context, string) (bool, error) { return false, nil }

// NotServing asks the member whose pod has the address.
func (f fakeMembers) NotServing(_ context.Context, address string) (etcd.Status, error) {
	for _, m := range f {
		if m.metrics != nil && address == "10.0.0.1:2381" { // all pods have this address
			return *m.metrics, nil
		}
	}
	return etcd.Status{}, errors.New("connection refused")
}

func (fakeMembers) ShareLogin(Members) {}

func (m *fakeMember) Status(context.Context) (etcd.Status, error) {
	if m.refusal != nil {
		return etcd.Status{}, m.refusal
	}
	status := m.says[0]
	if len(m.says) > 1 {
		m.says = m.says[1:]
	}
	return status, nil
}

func (m *fakeMember) Commits(context.Context) (etcd.Position, error) { return m.position, m.stalled }

func (m *fakeMember) RemoveMember(context.Context, uint64) error { return m.removal }

func (m *fakeMember) Members(context.Context) ([]etcd.Member, error) { return m.agreed, nil }

func (m *fakeMember) LocalMembers(ctx context.Context) ([]etcd.Member, error) {
	if m.remembered == nil {
		return m.Member.LocalMembers(ctx)
	}
	return m.remembered, nil
}

// join makes pods that run, and voters of them. The first one leads. The cache shows the
// pods.
func (f fakeMembers) join(t testing.TB, w *world, pods ...string) {
	t.Helper()
	var never corev1.ContainerState
	var agreed []etcd.Member
	for i, name := range pods {
		agreed = append(agreed, etcd.Member{ID: uint64(i + 1), Name: name, PeerURLs: []string{manifest.Names{Namespace: "ns", Cluster: "c"}.PeerURL(name)}})
		pod := memberPod(t, testCluster(), name)
		kubelet(pod, ended(0, ""), never, runs(), never, 0)
		pod.Status.PodIP = "10.0.0.1"
		pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}
		w.makePod(pod)
	}
	for _, m := range agreed {
		f[m.Name] = &fakeMember{agreed: agreed, says: []etcd.Status{{MemberID: m.ID, LeaderID: 1, Version: "3.6.16", RaftIndex: 5000, RaftApplied: 5000}}}
	}
	w.cfg.Members = func() Members { return f }
	w.watch()
}
