// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// copyWorld is an etcd whose data an EtcdCluster copies. Clients write to every etcd that accepts
// writes, all the time.
type copyWorld struct {
	*importWorld
	fenced   bool  // the etcd to copy
	revision int64 // of its last write
	// old is true if the etcd to copy is of 3.5, full if it has the alarm NOSPACE, and forgot if it accepts writes in
	// spite of its fence.
	old, full, forgot bool
	// later is true if the etcd to copy is of 3.7, and large if its database has outgrown the usual quota.
	later, large bool
	// stuck keeps pods from getting the data.
	stuck bool
	// own are the clusters of the EtcdCluster, by the first member's pod.
	own map[string]*ownEtcd
}

// ownEtcd is a first member with a copy.
type ownEtcd struct {
	fenced   bool
	revision int64
	written  bool
}

func newCopyWorld(t *testing.T, killAfter int) *copyWorld {
	t.Helper()
	w := &copyWorld{importWorld: newImportWorld(t, killAfter), revision: 20, own: map[string]*ownEtcd{}}
	w.edit(func(obj *api.EtcdCluster) {
		obj.Spec.ImportFrom.Method, obj.Spec.Size = api.ImportCopy, 1
		obj.Spec.Auth = &api.AuthPolicy{CredentialsSecret: "login"}
	})
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "ns"}, Data: map[string][]byte{"username": []byte("root"), "password": []byte("p")}}
	if err := w.kube.Tracker().Add(login); err != nil {
		t.Fatal(err)
	}
	w.cfg.Members = func() Members { return copyMembers{fakeMembers{}, w} }
	w.cfg.Survey = func(_ context.Context, s *importsource.Source) importsource.Facts {
		f := w.facts()
		if w.fenced {
			for i := range f.Answers {
				f.Answers[i].Status.Alarms = []etcd.Alarm{w.fence()}
			}
		}
		if s.Copies {
			f.Yield = importsource.Yield{Bytes: 1 << 20, Took: 1}
		}
		return f
	}
	w.c = w.cluster(w.etcdCluster())
	return w
}

func (w *copyWorld) fence() etcd.Alarm { return etcd.Fence(string(w.etcdCluster().UID)) }

// work is a moment of the clients and of the kubelet. Nobody writes to two etcds.
func (w *copyWorld) work() {
	w.t.Helper()
	w.mu.Lock()
	accepting := 0
	if !w.fenced {
		w.revision++
		accepting++
	}
	for name, own := range w.own {
		if !own.fenced {
			own.revision++
			own.written = true
			accepting++
			if !w.fenced {
				w.t.Errorf("both the etcd to copy and %s accept writes", name)
			}
		}
	}
	if accepting > 1 {
		w.t.Errorf("%d etcds accept writes", accepting)
	}
	w.mu.Unlock()
	pods := w.storedPods()
	for i := range pods {
		w.advance(&pods[i])
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), &pods[i], "ns"); err != nil {
			w.t.Fatal(err)
		}
	}
	w.watch()
}

// advance runs the next container of a pod.
func (w *copyWorld) advance(p *corev1.Pod) {
	var never corev1.ContainerState
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own[p.Name] == nil {
		ready := slices.ContainsFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == manifest.CheckSourceContainer })
		kubelet(p, waiting("PodInitializing", ""), never, waiting("PodInitializing", ""), never, 0)
		for _, c := range []string{manifest.CheckSourceContainer, manifest.CheckToolContainer} {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: c, State: ended(0, "")})
		}
		if !ready || !w.fenced || w.stuck {
			return
		}
		w.own[p.Name] = &ownEtcd{fenced: true, revision: w.revision}
	}
	kubelet(p, ended(0, ""), never, runs(), never, 0)
	for _, c := range []string{manifest.CheckSourceContainer, manifest.CheckToolContainer, manifest.CopyContainer, manifest.RestoreContainer} {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: c, State: ended(0, "")})
	}
	p.Status.PodIP = "10.1.0.1"
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	ready := corev1.ConditionTrue
	if w.own[p.Name].fenced {
		ready = corev1.ConditionFalse
	}
	p.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, ready, "")}
}

// until makes passes until the EtcdCluster is as expected, as importWorld does.
func (w *copyWorld) until(what string, is func(*api.EtcdCluster) bool) {
	w.t.Helper()
	for range 600 {
		w.work()
		w.c.take(w.edit(func(*api.EtcdCluster) {}))
		s, err := w.c.pass(w.t.Context())
		w.steps = append(w.steps, fmt.Sprintf("%s (%v)", s, err))
		if done := w.c.importer.job.done; done != nil {
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
		w.clock.Step(Period / 8)
		if is(w.etcdCluster()) {
			return
		}
	}
	w.t.Fatalf("it is never %s: %s", what, strings.Join(w.steps[max(0, len(w.steps)-20):], "\n"))
}

// copyMembers leads to the etcd to copy by its endpoints, and to own members by their pods.
type copyMembers struct {
	fakeMembers
	w *copyWorld
}

func (m copyMembers) Conn(ep etcd.Endpoint) (Member, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(ep.URL, "http://"), ".")
	if strings.HasPrefix(name, "old-") {
		name = ""
	}
	return copyMember{&fakeMember{}, m.w, name}, nil
}

// A token of the etcd to copy is none of the new cluster.
func (m copyMembers) ShareLogin(Members) { m.w.t.Error("two etcds share their tokens") }

// copyMember is an own member, or one of the etcd to copy if it has no name.
type copyMember struct {
	*fakeMember
	w    *copyWorld
	name string
}

var errNobody = errors.New("no etcd serves")

// state returns what the member is a part of.
func (m copyMember) state() (fenced *bool, revision int64, id uint64, err error) {
	if m.name == "" {
		return &m.w.fenced, m.w.revision, 7, nil
	}
	own := m.w.own[m.name]
	if own == nil {
		return nil, 0, 0, errNobody
	}
	return &own.fenced, own.revision, 9, nil
}

func (m copyMember) Status(context.Context) (etcd.Status, error) {
	fence := m.w.fence()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	fenced, revision, id, err := m.state()
	if err != nil {
		return etcd.Status{}, err
	}
	s := etcd.Status{MemberID: 300, ClusterID: id, LeaderID: 300, Version: "3.6.16", RaftIndex: 5000, RaftApplied: 5000, Revision: revision}
	if *fenced {
		s.Alarms = []etcd.Alarm{fence}
	}
	if m.name == "" && m.w.old {
		s.Version = "3.5.35"
	}
	if m.name == "" && m.w.later {
		s.Version = "3.7.3"
	}
	if m.name == "" && m.w.large {
		s.DBSize = 3 << 30
	}
	if m.name == "" && m.w.full {
		s.Alarms = append(s.Alarms, etcd.Alarm{MemberID: 300, Type: etcd.AlarmNoSpace})
	}
	return s, nil
}

func (m copyMember) Commits(context.Context) (etcd.Position, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	_, revision, id, err := m.state()
	return etcd.Position{ClusterID: id, MemberID: 300, Term: 2, Revision: revision}, err
}

func (m copyMember) Members(context.Context) ([]etcd.Member, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if _, _, _, err := m.state(); err != nil {
		return nil, err
	}
	return []etcd.Member{{ID: 300, Name: m.name, PeerURLs: []string{manifest.Names{Namespace: "ns", Cluster: "c"}.PeerURL(m.name)}}}, nil
}

func (m copyMember) Raise(_ context.Context, a etcd.Alarm) error { return m.set(a, true) }

func (m copyMember) Disarm(_ context.Context, a etcd.Alarm) error { return m.set(a, false) }

func (m copyMember) RefusesWrites(context.Context) (bool, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	fenced, _, _, err := m.state()
	return err == nil && *fenced && !(m.name == "" && m.w.forgot), err
}

func (m copyMember) set(a etcd.Alarm, to bool) error {
	if a != m.w.fence() {
		m.w.t.Errorf("the alarm is %v", a)
	}
	if m.name != "" && m.w.etcdCluster().Status.Phase != api.ClusterPhaseRunning {
		m.w.t.Error("the new cluster accepts writes before the record says that there is no way back")
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	fenced, _, _, err := m.state()
	if err == nil {
		err = m.w.write("alarm")
	}
	if err == nil {
		*fenced = to
	}
	return err
}

// led reports whether the Service leads to an own member.
func (w *copyWorld) led() bool { return len(w.slices()) > 0 }

func TestACopySurvivesTheOperatorsDeathAfterEachWrite(t *testing.T) {
	for name, finish := range map[string]func(w *copyWorld){
		"committed": func(w *copyWorld) {
			w.until("complete", func(obj *api.EtcdCluster) bool {
				return phase(api.ImportCompleted)(obj) && released(obj) && w.led()
			})
			st := w.etcdCluster().Status.Import
			if len(w.own) != 1 || !w.fenced || st.WriteStop.Revision != w.revision || st.WriteStop.Seconds <= 0 || st.WriteStop.ExpectedSeconds == 0 {
				w.t.Errorf("the etcd to copy refuses writes: %t, at %d; the own ones are %v; the status is %+v", w.fenced, w.revision, w.own, st.WriteStop)
			}
		},
		"taken back while writes have stopped": func(w *copyWorld) {
			w.stuck = true
			w.until("the stop", func(obj *api.EtcdCluster) bool { return writeStopOf(obj.Status.Import).BeginDate != "" })
			w.edit(func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &metav1.Time{Time: noon} })
			w.until("taken back", released)
			if w.fenced {
				w.t.Error("the etcd to copy refuses writes after the way back")
			}
			for name, own := range w.own {
				if own.written {
					w.t.Errorf("%s was written to", name)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := func(killAfter int, each bool) int {
				w := newCopyWorld(t, killAfter)
				w.killEach = each
				w.until("prepared", phase(api.ImportPrepared))
				if w.fenced || len(w.own) > 0 {
					t.Error("something has happened before the commit")
				}
				w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
				finish(w)
				w.c.importer.end()
				if t.Failed() {
					t.Fatalf("killed after write %d, or each: %t\n%s", killAfter, each, strings.Join(w.steps, "\n"))
				}
				return len(w.writes)
			}
			live(0, true)
			writes := live(0, false)
			if writes < 8 {
				t.Errorf("only %d writes", writes)
			}
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

// An etcd before 3.6 accepts writes again after the alarm NOSPACE, and may refuse them again when it restarts.
func TestACopyEndsIfItsEtcdMayHaveTakenWrites(t *testing.T) {
	for name, lapses := range map[string]func(w *copyWorld, lapsed bool){
		"NOSPACE":                        func(w *copyWorld, lapsed bool) { w.full = lapsed },
		"after NOSPACE that nobody sees": func(w *copyWorld, lapsed bool) { w.forgot = lapsed },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCopyWorld(t, 0)
			w.old, w.stuck = true, true
			w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
			w.until("stopped", func(obj *api.EtcdCluster) bool { return writeStopOf(obj.Status.Import).Revision > 0 })
			lapses(w, true)
			w.until("lapsed", func(obj *api.EtcdCluster) bool { return writeStopOf(obj.Status.Import).Lapsed })
			lapses(w, false)
			w.stuck = false
			w.c.importer.end()
			w.c = w.cluster(w.etcdCluster()) // another operator
			passes := 0
			w.until("here", func(obj *api.EtcdCluster) bool {
				passes++
				return passes > 40 || obj.Status.Phase == api.ClusterPhaseRunning
			})
			if st := w.etcdCluster().Status; st.Phase != api.ClusterPhaseCreating || len(w.own) == 0 || !strings.Contains(st.Reason, "may have taken writes since it stopped") || strings.Contains(st.Reason, "disarm them") {
				t.Errorf("with the copy in %d clusters, the EtcdCluster is %s: %s", len(w.own), st.Phase, st.Reason)
			}
			lapses(w, true)
			w.edit(func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &metav1.Time{Time: noon} })
			w.until("taken back", released)
			if w.fenced {
				t.Error("the etcd to copy has the operator's alarm after the way back")
			}
			w.c.importer.end()
		})
	}
}

// A copy may be prepared for weeks, while the etcd to copy changes. It never stops writes for data on which the new
// cluster can't start.
func TestACopyIsNotCommittedIfItsEtcdHasChanged(t *testing.T) {
	for want, change := range map[string]func(w *copyWorld, changed bool){
		"can't be restored into a cluster of the older": func(w *copyWorld, changed bool) { w.later = changed },
		"a member of the EtcdCluster stops all writes":  func(w *copyWorld, changed bool) { w.large = changed },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newCopyWorld(t, 0)
			w.until("prepared", phase(api.ImportPrepared))
			change(w, true)
			w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
			passes := 0
			w.until("here", func(*api.EtcdCluster) bool { passes++; return passes > 40 })
			if st := w.etcdCluster().Status; st.Import.CommitDate != "" || w.fenced || len(w.own) > 0 || !strings.Contains(st.Reason, want) || !strings.Contains(st.Reason, "delete the EtcdCluster to go back") {
				t.Errorf("committed: %q, the etcd to copy refuses writes: %t, the reason is %s", st.Import.CommitDate, w.fenced, st.Reason)
			}
			change(w, false)
			w.until("complete", phase(api.ImportCompleted))
			w.c.importer.end()
		})
	}
}

// The status of a copy disappears at any moment: no second cluster accepts writes beside the first,
// and no data is copied over newer data.
func TestACopySurvivesTheLossOfItsStatus(t *testing.T) {
	t.Parallel()
	every := 1
	if *kills > 0 {
		every = 7
	}
	for after := 0; after < 40; after += every {
		w := newCopyWorld(t, 0)
		w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.Commit = true; obj.Generation++ })
		passes := 0
		w.until("here", func(*api.EtcdCluster) bool { passes++; return passes > after })
		w.edit(func(obj *api.EtcdCluster) { obj.Status = api.ClusterStatus{} })
		w.until("accepting writes", func(obj *api.EtcdCluster) bool {
			return released(obj) && obj.Status.Phase == api.ClusterPhaseRunning && w.led()
		})
		if len(w.own) != 1 || !w.fenced {
			t.Errorf("after pass %d: the etcd to copy refuses writes: %t; the own ones are %v\n%s", after, w.fenced, w.own, strings.Join(w.steps, "\n"))
		}
		w.c.importer.end()
	}
}
