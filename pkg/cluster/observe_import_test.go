// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
)

// A look with hashes costs the etcd that serves. The operator takes it when nothing else is in the
// way, and seldom.
func TestTheDatabasesOfAnEtcdWithObstaclesAreSeldomRead(t *testing.T) {
	w := newImportWorld(t, 0)
	looks := 0
	w.cfg.Survey = func(_ context.Context, s *importsource.Source) importsource.Facts {
		looks++
		f := w.facts()
		if !s.Worthwhile(f) {
			t.Error("the data of an etcd without obstacles is not worthwhile")
		}
		f.Members = f.Members[:2]
		f.Members[1].Learner = true
		if s.Worthwhile(f) {
			t.Error("the data of an etcd with a learner is worthwhile")
		}
		f = w.facts()
		f.Answers[1].Digest.Keys++
		return f
	}
	w.c = w.cluster(w.etcdCluster())
	for began := w.clock.Now(); w.clock.Since(began) < 4*time.Minute; w.clock.Step(Period) {
		w.watch()
		if s, err := w.c.pass(t.Context()); err != nil && !isNotYet(err) {
			t.Fatalf("%s: %v", s, err)
		}
		if j := &w.c.importer.job; j.done != nil {
			apply := <-j.done
			j.done <- apply
		}
	}
	w.c.importer.end()
	if got := w.etcdCluster().Status.Import.Obstacles; looks != 1 || len(got) != 1 {
		t.Errorf("%d looks in four minutes, obstacles %q", looks, got)
	}
}

// A begin may be impossible although the etcd has no obstacles. Its members must not read their databases
// again and again meanwhile.
func TestTheDatabasesOfAnEtcdAreNotReadWhileTheImportCannotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		hinder func(*importWorld)
		looks  int
	}{
		"paused": {func(w *importWorld) { w.edit(func(obj *api.EtcdCluster) { obj.Spec.Paused = true }) }, 0},
		"refused spec": {func(w *importWorld) {
			w.edit(func(obj *api.EtcdCluster) {
				obj.Spec.Pod = &api.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_DATA_DIR", Value: "/"}}}
			})
		}, 0},
		"no finalizer": {func(w *importWorld) {
			w.clusters.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(api.Resource("etcdclusters"), "c", errors.New("a webhook says no"))
			})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newImportWorld(t, 0)
			looks := 0
			w.cfg.Survey = func(context.Context, *importsource.Source) importsource.Facts {
				looks++
				return w.facts()
			}
			c.hinder(w)
			w.c = w.cluster(w.etcdCluster())
			for began := w.clock.Now(); w.clock.Since(began) < 4*time.Minute; w.clock.Step(Period) {
				w.watch()
				_, _ = w.c.pass(t.Context())
				if j := &w.c.importer.job; j.done != nil {
					apply := <-j.done
					j.done <- apply
				}
			}
			w.c.importer.end()
			if w.etcdCluster().Status.Import.Begun() || looks != c.looks {
				t.Errorf("%d looks in four minutes, and should be %d; the status is %+v", looks, c.looks, w.etcdCluster().Status)
			}
		})
	}
}

// The members may hold different data. A copy would take that of one of them, and nothing compares it later.
func TestNoImportBeginsBeforeTheDataIsCompared(t *testing.T) {
	for name, newWorld := range map[string]func(*testing.T) *importWorld{
		"join": func(t *testing.T) *importWorld { return newImportWorld(t, 0) },
		"copy": func(t *testing.T) *importWorld { return newCopyWorld(t, 0).importWorld },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			look, looks, unread := w.cfg.Survey, 0, 1
			w.cfg.Survey = func(ctx context.Context, s *importsource.Source) importsource.Facts {
				f := look(ctx, s)
				if looks++; looks <= unread {
					f.Answers[1].NoDigest = errors.New("mvcc: required revision has been compacted")
				}
				return f
			}
			w.c = w.cluster(w.etcdCluster())
			began := w.surveyed(surveyRest - time.Minute)
			got := w.etcdCluster().Status.Import
			if began || looks != 1 || len(got.Obstacles) != 1 || !strings.Contains(got.Obstacles[0], "could not read that of old-1: mvcc: required revision has been compacted") {
				t.Errorf("after %d looks, of which none has compared the data, begun is %v, obstacles %q", looks, began, got.Obstacles)
			}
			if began := w.surveyed(2 * time.Minute); !began || looks != 2 {
				t.Errorf("after %d looks, of which the last one has compared the data, begun is %v", looks, began)
			}
			w.c.importer.end()
		})
	}
}

// A look may read data for an hour. Somebody who still sees the obstacle that is gone edits the EtcdCluster, and the
// look begins again.
func TestAnObstacleThatIsGoneLeavesTheStatusBeforeTheDataIsCompared(t *testing.T) {
	for name, newWorld := range map[string]func(*testing.T) *importWorld{
		"join": func(t *testing.T) *importWorld { return newImportWorld(t, 0) },
		"copy": func(t *testing.T) *importWorld { return newCopyWorld(t, 0).importWorld },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			look, looks, reads, end := w.cfg.Survey, 0, make(chan struct{}), make(chan struct{})
			w.cfg.Survey = func(ctx context.Context, s *importsource.Source) importsource.Facts {
				f := look(ctx, s)
				f.DataRevision = 0
				if looks++; looks == 1 {
					f.Answers[1].Err = errors.New("no route to host")
					f.NotListed = errors.New("no quorum")
					return f
				}
				if !s.Worthwhile(f) {
					t.Error("there is an obstacle")
				}
				close(reads)
				<-end
				return look(ctx, s)
			}
			w.c = w.cluster(w.etcdCluster())
			pass := func() {
				w.watch()
				w.c.take(w.edit(func(*api.EtcdCluster) {}))
				if s, err := w.c.pass(t.Context()); err != nil && !isNotYet(err) {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if w.surveyed(Period); len(w.c.importer.job.done) == 1 {
				pass()
			}
			if got := w.etcdCluster().Status.Import.Obstacles; len(got) == 0 {
				t.Fatal("the first look has found no obstacle")
			}
			w.clock.Step(surveyPeriod)
			pass()
			<-reads
			pass()
			st := w.etcdCluster().Status
			says := slices.ContainsFunc(st.Conditions, func(c api.ClusterCondition) bool {
				return strings.Contains(c.Message, "compares the data of all members")
			})
			if len(st.Import.Obstacles) > 0 || st.Reason != "" || !says || st.Import.Begun() {
				t.Errorf("while a look reads data, the obstacles are %q, the reason is %q, and the conditions are %+v", st.Import.Obstacles, st.Reason, st.Conditions)
			}
			close(end)
			if !w.surveyed(time.Minute) {
				t.Errorf("the import does not begin: %s", w.etcdCluster().Status.Reason)
			}
			w.c.importer.end()
		})
	}
}

// A member alone has none to compare with.
func TestTheImportOfASingleMemberNeedsNoComparison(t *testing.T) {
	f := importsource.Facts{Answers: []importsource.Answer{{Endpoint: "old-0", NoDigest: errors.New("compacted")}, {Endpoint: "old-1", Err: errors.New("down")}}}
	if why := uncompared(f); why != "" {
		t.Error(why)
	}
}

// surveyed runs passes for a time, and reports whether one begins the import.
func (w *importWorld) surveyed(howLong time.Duration) bool {
	w.t.Helper()
	for from := w.clock.Now(); w.clock.Since(from) < howLong; w.clock.Step(Period) {
		w.watch()
		w.c.take(w.edit(func(*api.EtcdCluster) {}))
		s, err := w.c.pass(w.t.Context())
		if err != nil && !isNotYet(err) {
			w.t.Fatalf("%s: %v", s, err)
		}
		if _, begins := s.(plan.BeginImport); begins {
			return true
		}
		if j := &w.c.importer.job; j.done != nil {
			apply := <-j.done
			j.done <- apply
		}
	}
	return false
}

// Without its certificate, the operator would hold the members for silent, and name a Secret that the
// spec names already.
func TestAnImportWithoutItsSecretAsksNobody(t *testing.T) {
	w := newImportWorld(t, 0)
	ca := etcdtest.NewCA(t, "ca")
	w.put(certificateSecret(operatorUse, certsecret.Static, "import", ca, etcdtest.Leaf{Name: "operator"}, ca))
	fails := 1
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails--
		return fails >= 0, nil, apierrors.NewServerTimeout(corev1.Resource("secrets"), "get", 1)
	})
	o := &plan.Observation{Now: w.clock.Now(), Spec: api.ClusterSpec{ImportFrom: &api.ImportSource{ClientTLSSecret: "import"}}}
	if err := w.c.readImportSecret(t.Context(), o); err == nil {
		t.Error("the Secret is unread, and there is no error")
	}
	o.Now = o.Now.Add(time.Second)
	if err := w.c.readImportSecret(t.Context(), o); err != nil || w.c.importer.secretID == nil {
		t.Errorf("a second later, the certificate is %v: %v", w.c.importer.secretID, err)
	}
	fails = 1
	o.Now = o.Now.Add(certPeriod)
	if err := w.c.readImportSecret(t.Context(), o); err == nil || w.c.importer.secretID == nil {
		t.Errorf("the certificate in use is %v after a failure: %v", w.c.importer.secretID, err)
	}
}

// A seed may have begun before somebody set the field. It is no member of the imported etcd.
func TestASeedIsNoMemberOfTheImportedEtcd(t *testing.T) {
	o := look(t, "cluster import=begun:held\nmember a leader")
	seed := answer{pod: *o.Pod("a"), status: &etcd.Status{MemberID: 1, ClusterID: 8, LeaderID: 1}}
	members := []etcd.Member{o.Members[0].Member}
	if belongs(o, members, seed) {
		t.Error("a member of another cluster belongs to the import")
	}
	seed.status.ClusterID = 7
	if !belongs(o, members, seed) {
		t.Error("a member of the imported cluster does not belong to the import")
	}
}

// The former members may serve while the operator lacks the certificate with which it asks them.
func TestAnImportThatHasBegunStillNamesAMissingSecret(t *testing.T) {
	w := newImportWorld(t, 0)
	w.c = w.cluster(w.etcdCluster())
	if !w.surveyed(2 * time.Minute) {
		t.Fatal("the import does not begin")
	}
	w.c.take(w.edit(func(obj *api.EtcdCluster) { obj.Spec.ImportFrom.ClientTLSSecret = "gone" }))
	o, err := w.c.observe(t.Context())
	if err != nil || !o.Quorum || !strings.Contains(o.Import.Problem, "Secret gone (spec.importFrom.clientTLSSecret) does not exist") {
		t.Errorf("the quorum is %v, the problem %q: %v", o.Quorum, o.Import.Problem, err)
	}
	w.c.importer.end()
}
