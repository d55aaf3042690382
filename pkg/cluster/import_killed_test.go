// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
)

var kills = flag.Int("kills", 3, "after how many writes of an import, spread over all, a single operator is killed; 0: after each")

var errKilled = errors.New("the operator was killed")

// importWorld is an etcd of three members that an EtcdCluster imports. The operator is killed after
// one of its writes, or after each: no later one takes effect, and another operator continues.
type importWorld struct {
	*world
	clock *clocktesting.FakeClock
	c     *Cluster

	mu        sync.Mutex
	members   []etcd.Member
	leader    uint64
	serial    uint64
	writes    []string
	killAfter int    // the number of the last write; 0: none
	killEach  bool   // each operator makes one write
	killed    bool   // no write takes effect
	down      string // a member that does not serve
	steps     []string
}

func newImportWorld(t *testing.T, killAfter int) *importWorld {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Spec.ImportFrom = &api.ImportSource{}
	obj.Spec.Service = &api.ServicePolicy{Bridges: []api.ServiceBridge{{Name: "old", Hostnames: []string{"old-0", "old-1", "old-2"}}}}
	for i := range 3 {
		obj.Spec.ImportFrom.Endpoints = append(obj.Spec.ImportFrom.Endpoints, fmt.Sprintf("http://old-%d.old.ns.svc:2379", i))
	}
	w := &importWorld{world: newWorld(t, clock, obj), clock: clock, leader: 101, serial: 200, killAfter: killAfter}
	for i := range uint64(3) {
		w.members = append(w.members, etcd.Member{ID: 101 + i, Name: fmt.Sprint("old-", i), PeerURLs: []string{fmt.Sprintf("http://old-%d.old.ns.svc:2380", i)}})
	}
	w.makeService(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "ns"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
	})
	w.cfg.Members = func() Members { return importedMembers{fakeMembers{}, w} }
	w.cfg.Survey = func(context.Context, *importsource.Source) importsource.Facts { return w.facts() }
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		w.kube.PrependReactor(verb, "*", w.apiWrite)
		w.clusters.PrependReactor(verb, "*", w.apiWrite)
	}
	w.c = w.cluster(obj)
	return w
}

// write counts a write, and returns an error if it comes too late.
func (w *importWorld) write(what string) error {
	if w.killed {
		return errKilled
	}
	w.writes = append(w.writes, what)
	w.killed = w.killEach || len(w.writes) == w.killAfter
	return nil
}

func (w *importWorld) apiWrite(a clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if onlyAsks(a) {
		return false, nil, nil
	}
	err := w.write(a.GetVerb() + " " + a.GetResource().Resource)
	return err != nil, nil, err
}

func (w *importWorld) facts() importsource.Facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := importsource.Facts{Members: slices.Clone(w.members), DataRevision: 20}
	f.ClusterVersion, _ = etcd.ParseVersion("3.6.0")
	for _, m := range w.members {
		f.Answers = append(f.Answers, importsource.Answer{Endpoint: m.Name, Status: w.status(m)})
	}
	return f
}

func (w *importWorld) status(m etcd.Member) etcd.Status {
	return etcd.Status{
		MemberID: m.ID, ClusterID: 7, LeaderID: w.leader, Learner: m.Learner, Version: "3.6.16",
		DBSize: 1 << 20, DBQuota: 2 << 30, RaftIndex: 5000, RaftApplied: 5000, Revision: 20,
	}
}

// former reports whether a member belongs to the imported etcd.
func former(m etcd.Member) bool { return m.ID < 200 }

func (w *importWorld) voters(of func(etcd.Member) bool) (n int) {
	for _, m := range w.members {
		if !m.Learner && of(m) {
			n++
		}
	}
	return n
}

func all(etcd.Member) bool { return true }

// check fails the test if the membership breaks the rule of an import.
func (w *importWorld) check(removed *etcd.Member) {
	st := w.etcdCluster().Status.Import
	committed := st != nil && st.CommitDate != ""
	theirs, total := w.voters(former), w.voters(all)
	switch {
	case removed != nil && former(*removed) && !committed:
		w.t.Errorf("the former member %s is removed before the commit", removed.Name)
	case removed != nil && former(*removed) && !st.Has(etcd.FormatID(removed.ID)):
		w.t.Errorf("the member %s is removed, and not on record", removed.Name)
	case !committed && theirs < etcd.Quorum(total):
		w.t.Errorf("%d of %d votes are those of former members before the commit", theirs, total)
	}
}

// importedMembers leads to the members by their URLs.
type importedMembers struct {
	fakeMembers
	w *importWorld
}

func (i importedMembers) Conn(ep etcd.Endpoint) (Member, error) {
	host := strings.TrimPrefix(ep.URL, "http://")
	name, _, _ := strings.Cut(host, ".")
	return importedMember{&fakeMember{}, i.w, name}, nil
}

// importedMember is the member of a name, which may not exist.
type importedMember struct {
	*fakeMember
	w    *importWorld
	name string
}

func (m importedMember) find() (etcd.Member, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	i := slices.IndexFunc(m.w.members, func(other etcd.Member) bool { return other.Name == m.name })
	if i < 0 || m.name == m.w.down {
		return etcd.Member{}, errors.New("no etcd serves")
	}
	return m.w.members[i], nil
}

func (m importedMember) Status(context.Context) (etcd.Status, error) {
	self, err := m.find()
	if err != nil {
		return etcd.Status{}, err
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.w.status(self), nil
}

func (m importedMember) Commits(context.Context) (etcd.Position, error) {
	_, err := m.find()
	return etcd.Position{}, err
}

func (m importedMember) Members(context.Context) ([]etcd.Member, error) {
	_, err := m.find()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return slices.Clone(m.w.members), err
}

func (m importedMember) Digest(context.Context, int64) (etcd.Digest, error) {
	return etcd.Digest{Keys: 5}, nil
}
func (m importedMember) ConnectedTo(context.Context, uint64) (bool, error) { return true, nil }

// change makes a change of the membership, unless the operator is dead.
func (m importedMember) change(what string, do func() *etcd.Member) error {
	if _, err := m.find(); err != nil {
		return err
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if err := m.w.write(what); err != nil {
		return err
	}
	m.w.check(do())
	return nil
}

func (m importedMember) AddMember(_ context.Context, peerURL string, learner bool) (etcd.Member, error) {
	added := etcd.Member{PeerURLs: []string{peerURL}, Learner: learner}
	err := m.change("add "+peerURL, func() *etcd.Member {
		m.w.serial++
		added.ID = m.w.serial
		m.w.members = append(m.w.members, added)
		return nil
	})
	return added, err
}

func (m importedMember) PromoteMember(_ context.Context, id uint64) error {
	return m.change("promote", func() *etcd.Member {
		for i := range m.w.members {
			if m.w.members[i].ID == id {
				m.w.members[i].Learner = false
			}
		}
		return nil
	})
}

func (m importedMember) RemoveMember(_ context.Context, id uint64) error {
	return m.change("remove", func() *etcd.Member {
		i := slices.IndexFunc(m.w.members, func(other etcd.Member) bool { return other.ID == id })
		removed := m.w.members[i]
		m.w.members = slices.Delete(slices.Clone(m.w.members), i, i+1)
		if m.w.leader == id {
			m.w.leader = m.w.members[0].ID
		}
		return &removed
	})
}

func (m importedMember) MoveLeader(_ context.Context, to uint64) error {
	return m.change("move leader", func() *etcd.Member { m.w.leader = to; return nil })
}

// kubelet starts etcd in the pods whose members have been added.
func (w *importWorld) kubelet() {
	w.t.Helper()
	var never corev1.ContainerState
	pods := w.storedPods()
	for i := range pods {
		p := &pods[i]
		w.mu.Lock()
		at := slices.IndexFunc(w.members, func(m etcd.Member) bool { return strings.HasPrefix(m.Host(), p.Name+".") })
		serves, votes := at >= 0, at >= 0 && !w.members[at].Learner
		if serves {
			w.members[at].Name = p.Name
		}
		w.mu.Unlock()
		kubelet(p, ended(0, ""), never, runs(), never, 0)
		p.Status.ContainerStatuses[1].Started = new(serves)
		p.Status.PodIP = fmt.Sprintf("10.1.0.%d", i+1)
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
		ready := corev1.ConditionFalse
		if votes {
			ready = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, ready, "")}
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "ns"); err != nil {
			w.t.Fatal(err)
		}
	}
	w.watch()
}

// until makes passes until the EtcdCluster is as expected. An operator that was killed has a
// successor, which knows nothing.
func (w *importWorld) until(what string, is func(*api.EtcdCluster) bool) {
	w.t.Helper()
	for range 600 {
		w.kubelet()
		w.c.take(w.edit(func(*api.EtcdCluster) {})) // as an informer
		s, _ := w.c.pass(w.t.Context())
		w.steps = append(w.steps, s.String())
		if done := w.c.importer.job.done; done != nil { // a look or a proof: its result is for the next pass
			done <- <-done
		}
		if w.killed {
			w.steps = append(w.steps, "KILLED after "+w.writes[len(w.writes)-1])
			w.c.importer.end()
			w.mu.Lock()
			w.killed = false
			w.mu.Unlock()
			w.c = w.cluster(w.etcdCluster())
		}
		w.clock.Step(time.Second)
		if is(w.etcdCluster()) {
			return
		}
	}
	w.t.Fatalf("it is never %s: %s", what, strings.Join(w.steps[len(w.steps)-20:], "\n"))
}

func (w *importWorld) slices() []string { return (&bridgeWorld{world: w.world}).leads() }

func phase(want api.ImportPhase) func(*api.EtcdCluster) bool {
	return func(obj *api.EtcdCluster) bool { return obj.Status.Import != nil && obj.Status.Import.Phase == want }
}

func released(obj *api.EtcdCluster) bool { return len(obj.Finalizers) == 0 }

// Whatever its last write was, the next operator finishes what the former one began.
func TestAnImportSurvivesTheOperatorsDeathAfterEachWrite(t *testing.T) {
	for name, finish := range map[string]func(w *importWorld){
		"committed": func(w *importWorld) {
			w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
			w.until("complete", func(obj *api.EtcdCluster) bool {
				return phase(api.ImportCompleted)(obj) && released(obj) && len(w.slices()) == 1 && strings.Contains(w.slices()[0], "old-2")
			})
			if got := len(w.members); got != 3 || w.voters(former) != 0 || w.voters(all) != 3 {
				w.t.Errorf("the members are %v", w.members)
			}
		},
		"taken back": func(w *importWorld) {
			w.edit(func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &metav1.Time{Time: noon} })
			w.until("taken back", released)
			if w.voters(former) != 3 || len(w.members) != 3 {
				w.t.Errorf("the members are %v", w.members)
			}
			if got := w.slices(); len(got) > 0 {
				w.t.Errorf("the former Service leads to %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := func(killAfter int, each bool) int {
				w := newImportWorld(t, killAfter)
				w.killEach = each
				w.until("joined", phase(api.ImportJoined))
				finish(w)
				w.c.importer.end()
				if t.Failed() {
					t.Fatalf("killed after write %d, or each: %t\n%s", killAfter, each, strings.Join(w.steps, "\n"))
				}
				return len(w.writes)
			}
			if n := live(0, true); n < 40 {
				t.Errorf("only %d operators have died", n)
			}
			writes := live(0, false)
			every := 1
			if *kills > 0 {
				every = writes / *kills
			}
			for after := every; after <= writes; after += every {
				live(after, false)
			}
		})
	}
}

// There is no way back from the commit. Another operator has to prove the last member again, and one that is
// lost can say nothing about it.
func TestAFormerMemberThatIsLostAfterTheCommitHoldsUpNoProof(t *testing.T) {
	t.Parallel()
	w := newImportWorld(t, 0)
	w.until("joined", phase(api.ImportJoined))
	w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
	w.until("committed", phase(api.ImportMoving))
	w.c.importer.end()
	w.c = w.cluster(w.etcdCluster())
	w.down = "old-2"
	w.until("complete", phase(api.ImportCompleted))
	w.c.importer.end()
	if got := w.steps[len(w.steps)-1]; w.voters(former) != 0 || w.voters(all) != 3 {
		t.Errorf("the members are %v after %s", w.members, got)
	}
}
