// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

var (
	restoresResource = api.SchemeGroupVersion.WithResource(api.EtcdRestoreResourcePlural)
	clustersResource = api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)
)

// restorer is the rest of the world that a test of a backup needs: the restore operator, the
// etcd operator, Kubernetes' garbage collector, and the restored etcd.
type restorer struct {
	w *world

	mu   sync.Mutex
	asks []*api.EtcdRestore // each that was created
	// ends is the status of each EtcdRestore; zero: nobody manages it.
	ends api.RestoreStatus
	// finalizer keeps EtcdRestores that are deleted.
	finalizer bool
	contents  etcd.Contents
	compacted int64 // up to this revision
	beyond    int64 // the revision of an EtcdRestore by which the restored etcd is
	ended     int64 // leases that have ended since, each with a key of its own
	whole     bool  // the restored etcd has the history of the backup
	values    map[string]string
	sources   []snapshot.Source
	closed    int
}

func withRestorer(w *world) *restorer {
	r := &restorer{w: w, ends: api.RestoreStatus{Phase: api.RestorePhaseSucceeded}, contents: etcd.Contents{Revision: 1000, Keys: 7}, values: map[string]string{}}
	w.etcd.PrependReactor("create", "etcdrestores", r.create)
	w.etcd.PrependReactor("delete", "etcdrestores", r.remove)
	w.cfg.OpenRestored = func(s snapshot.Source) (Restored, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sources = append(r.sources, s)
		return r, nil
	}
	return r
}

func (r *restorer) Contents(_ context.Context, at int64) (etcd.Contents, error) {
	switch {
	case at > r.contents.Revision:
		return etcd.Contents{}, rpctypes.ErrFutureRev
	case at > 0 && at < r.compacted:
		return etcd.Contents{}, rpctypes.ErrCompacted
	}
	return r.contents, nil
}

// Value has no key of a lease that has ended, but at the revision before that.
func (r *restorer) Value(_ context.Context, key string, at int64) (string, bool, error) {
	value, exists := r.values[key]
	return value, exists && (r.ended == 0 || at == r.compacted), nil
}

func (r *restorer) Close() { r.closed++ }

func (r *restorer) create(a clienttesting.Action) (bool, runtime.Object, error) {
	obj := a.(clienttesting.CreateAction).GetObject().(*api.EtcdRestore).DeepCopy()
	if errs := api.ValidateEtcdRestore(obj); len(errs) > 0 {
		return true, nil, errs.ToAggregate()
	}
	if !obj.IsTest() {
		return true, nil, errors.New("the EtcdRestore is that of no test")
	}
	r.mu.Lock()
	obj.UID, obj.Status = "r-1", r.ends
	if r.finalizer {
		obj.Finalizers = []string{api.RestoreFinalizer}
	}
	if at := obj.Spec.Revision; at > 0 {
		r.contents.Revision, r.compacted = at+r.beyond+r.ended, at+r.beyond
		if r.whole {
			r.compacted = 0
		}
	}
	r.asks = append(r.asks, obj)
	r.mu.Unlock()
	tracker := r.w.etcd.Tracker()
	if err := tracker.Create(restoresResource, obj, obj.Namespace); err != nil || obj.Status.Phase != api.RestorePhaseSucceeded {
		return true, obj, err
	}
	cluster := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name, UID: "c-1", Labels: obj.Spec.ClusterTemplate.Metadata.Labels}}
	if err := tracker.Create(clustersResource, cluster, obj.Namespace); err != nil {
		return true, nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name + "-0", Labels: manifest.NamesOf(cluster).Labels(), OwnerReferences: []metav1.OwnerReference{manifest.OwnerOf(cluster)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd"}}},
		Status:     corev1.PodStatus{PodIP: "10.0.0.9", ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
	return true, obj, r.w.kube.Tracker().Add(pod)
}

func (r *restorer) remove(a clienttesting.Action) (bool, runtime.Object, error) {
	name := a.(clienttesting.DeleteAction).GetName()
	obj, err := r.w.etcd.Tracker().Get(restoresResource, "ns", name)
	if err != nil {
		return true, nil, err
	}
	restore := obj.(*api.EtcdRestore).DeepCopy()
	if want := a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions; want == nil || want.UID == nil || *want.UID != restore.UID {
		return true, nil, errors.New("the deletion names no UID")
	}
	if len(restore.Finalizers) > 0 {
		now := metav1.Now()
		restore.DeletionTimestamp = &now
		time.AfterFunc(20*time.Second, func() { r.collect(name) }) // by the restore operator
		return true, nil, r.w.etcd.Tracker().Update(restoresResource, restore, "ns")
	}
	r.collect(name)
	return true, nil, nil
}

// collect removes an EtcdRestore, and what belongs to it.
func (r *restorer) collect(name string) {
	_ = r.w.etcd.Tracker().Delete(restoresResource, "ns", name)
	_ = r.w.etcd.Tracker().Delete(clustersResource, "ns", name)
	_ = r.w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", name+"-0")
}

// left names what tests have left behind.
func (r *restorer) left() (names []string) {
	for _, resource := range []string{"etcdrestores", "etcdclusters"} {
		if _, err := r.w.etcd.Tracker().Get(api.SchemeGroupVersion.WithResource(resource), "ns", "b-restore-test"); !apierrors.IsNotFound(err) {
			names = append(names, resource)
		}
	}
	return names
}

func tested(policy *api.BackupPolicy, test api.RestoreTest) *api.EtcdBackup {
	obj := testBackup(policy)
	obj.Spec.RestoreTest = &test
	return obj
}

func TestABackupIsProvedByRestoringIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(nil, api.RestoreTest{}))
		r := withRestorer(w)
		defer w.run()()
		pass(time.Minute)
		st := w.status()
		got := st.RestoreTest
		if got == nil || got.Result != api.RestoreTestPassed || got.Reason != "" || got.Key != "bucket/etcd" || got.LastSuccessKey != "bucket/etcd" ||
			got.EtcdRevision != 1000 || got.Keys != 7 || got.LastSuccessDate == nil || got.StartDate == nil || got.Duration == nil {
			t.Fatalf("status %+v", got)
		}
		if st.Phase != api.BackupPhaseSucceeded || !st.Succeeded {
			t.Errorf("the backup is %+v", st)
		}
		ask := r.asks[0]
		if ask.Name != "b-restore-test" || ask.Spec.S3.Path != "bucket/etcd" || ask.Spec.Pick != "" || string(ask.Spec.ClusterTemplate.Spec.Raw) != `{"size":1,"version":"3.6.16"}` {
			t.Errorf("the EtcdRestore is %+v, its template %s", ask.Spec, ask.Spec.ClusterTemplate.Spec.Raw)
		}
		if ask.OwnerReferences[0].UID != testUID || ask.Labels[api.RestoreTestLabel] != string(testUID) || ask.Spec.ClusterTemplate.Metadata.Labels[api.RestoreTestLabel] != string(testUID) {
			t.Errorf("metadata %+v", ask.ObjectMeta)
		}
		if s := r.sources[0]; len(s.Endpoints) != 1 || s.Endpoints[0].IP != "10.0.0.9" || s.TLS != nil {
			t.Errorf("the test asks %+v", s)
		}
		if left := r.left(); len(left) > 0 || r.closed != 1 {
			t.Errorf("%v are left, and %d connections were closed", left, r.closed)
		}
		if w.Times("Restore Test Passed: Restored bucket/etcd: revision 1000, 7 keys") != 1 {
			t.Errorf("events %q", w.Events())
		}
		if at, ok := w.metric("restore_test_last_success_timestamp_seconds"); !ok || at == 0 {
			t.Errorf("metric %v, %t", at, ok)
		}
		pass(24 * time.Hour)
		if len(r.asks) != 1 {
			t.Errorf("one backup was tested %d times", len(r.asks))
		}
	})
}

func TestWhatATestFinds(t *testing.T) {
	wrong := "other"
	for name, tt := range map[string]struct {
		test   api.RestoreTest
		change func(*restorer)
		result api.RestoreTestResult
		reason string
	}{
		"a damaged backup": {
			change: func(r *restorer) {
				r.ends = api.RestoreStatus{Phase: api.RestorePhaseFailed, Reason: "its content does not fit the sha256"}
			},
			result: api.RestoreTestFailed, reason: "the backup is not good: the restore failed: its content does not fit the sha256",
		},
		"fewer revisions than the backup was made of": {
			change: func(r *restorer) { r.contents.Revision = 1 },
			result: api.RestoreTestFailed, reason: "has revision 1, and the backup was made of revision 2",
		},
		"the key of the check is missing": {
			test: api.RestoreTest{Check: &api.RestoreCheck{Key: "/app"}}, change: func(*restorer) {},
			result: api.RestoreTestFailed, reason: `lacks the key "/app"`,
		},
		"the key has another value": {
			test:   api.RestoreTest{Check: &api.RestoreCheck{Key: "/app", Value: &wrong}},
			change: func(r *restorer) { r.values["/app"] = "secret" },
			result: api.RestoreTestFailed, reason: `the key "/app" has another value`,
		},
		"the key has its value": {
			test:   api.RestoreTest{Check: &api.RestoreCheck{Key: "/app", Value: &wrong}},
			change: func(r *restorer) { r.values["/app"] = "other" },
			result: api.RestoreTestPassed,
		},
		"no restore operator": {
			change: func(r *restorer) { r.ends = api.RestoreStatus{} },
			result: api.RestoreTestNotDone, reason: "up after 15m0s (spec.restoreTest.timeoutInSecond); it waited for: a restore operator that manages the EtcdRestore b-restore-test",
		},
		"a quota": {
			test: api.RestoreTest{TimeoutInSecond: 60},
			change: func(r *restorer) {
				r.ends = api.RestoreStatus{Phase: api.RestorePhaseStarting, Reason: "exceeded quota: pods"}
			},
			result: api.RestoreTestNotDone, reason: "after 1m0s (spec.restoreTest.timeoutInSecond); it waited for: the EtcdRestore b-restore-test, phase Starting: exceeded quota: pods",
		},
		"a restore that the operator refuses": {
			change: func(r *restorer) { r.ends = api.RestoreStatus{Phase: api.RestorePhaseInvalid, Reason: "no"} },
			result: api.RestoreTestNotDone, reason: "refuses the EtcdRestore of the test: no",
		},
		"a finalizer that keeps the EtcdRestore for a moment": {
			change: func(r *restorer) { r.finalizer = true },
			result: api.RestoreTestPassed,
		},
		"somebody's cluster of that name": {
			change: func(r *restorer) {
				_ = r.w.etcd.Tracker().Add(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b-restore-test", UID: "x"}})
			},
			result: api.RestoreTestNotDone, reason: "the EtcdCluster b-restore-test belongs to something else",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(nil, tt.test))
				r := withRestorer(w)
				tt.change(r)
				theirs := r.left()
				stop := w.run()
				pass(45 * time.Second)
				if st := w.status().RestoreTest; st.Result == api.RestoreTestRunning && !strings.HasPrefix(st.Reason, "the test waits for ") {
					t.Errorf("a running test shows %q", st.Reason)
				}
				pass(19 * time.Minute)
				st := w.status().RestoreTest
				found := slices.ContainsFunc(w.statuses, func(s api.BackupStatus) bool {
					return s.RestoreTest != nil && s.RestoreTest.Result == tt.result && strings.Contains(s.RestoreTest.Reason, tt.reason)
				})
				if !found {
					t.Errorf("status %+v, want %s: %s", st, tt.result, tt.reason)
				}
				if failed, _ := w.metric("restore_test_failed"); st.Result != api.RestoreTestRunning && (failed == 1) != (tt.result != api.RestoreTestPassed) {
					t.Errorf("the metric is %v", failed)
				}
				if strings.Contains(w.logged.String()+st.Reason, "secret") {
					t.Error("the log or the status shows a value of etcd")
				}
				stop()
				if left := r.left(); !slices.Equal(left, theirs) && st.Result != api.RestoreTestRunning {
					t.Errorf("%v are left", left)
				}
			})
		})
	}
}

// A test of each backup would cost more than the backups. The interval counts from the
// beginning of the last test, and a backup is never tested twice.
func TestTestsFollowBackupsAndTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(hourly, api.RestoreTest{IntervalInSecond: 3 * 3600}))
		r := withRestorer(w)
		defer w.run()()
		pass(7*time.Hour + 10*time.Minute)
		var keys []string
		for _, ask := range r.asks {
			keys = append(keys, ask.Spec.S3.Path)
		}
		want := []string{"bucket/etcd_v2_2000-01-01-00:00:00", "bucket/etcd_v5_2000-01-01-03:00:00", "bucket/etcd_v8_2000-01-01-06:00:00"}
		if !slices.Equal(keys, want) {
			t.Errorf("tested were %q, want %q", keys, want)
		}
	})
}

// What the status says of the newest backup is about the destination before, until there is one at the new.
func TestNoTestLooksForABackupAtAnotherDestination(t *testing.T) {
	for name, edit := range map[string]func(*api.BackupSpec){
		"a path":      func(s *api.BackupSpec) { s.S3.Path = "other/etcd" },
		"an endpoint": func(s *api.BackupSpec) { s.S3.Endpoint = "https://other" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(hourly, api.RestoreTest{}))
				r := withRestorer(w)
				r.ends = api.RestoreStatus{Phase: api.RestorePhaseInvalid, Reason: "the store does not answer"}
				defer w.run()()
				pass(35 * time.Minute)
				r.mu.Lock()
				asked := len(r.asks)
				r.ends = api.RestoreStatus{Phase: api.RestorePhaseSucceeded}
				r.mu.Unlock()
				w.edit(func(obj *api.EtcdBackup) { edit(&obj.Spec) })
				pass(20 * time.Minute)
				r.mu.Lock()
				if n := len(r.asks) - asked; n > 0 {
					t.Errorf("after the edit, %d tests asked for %s", n, r.asks[asked].Spec.S3.Path)
				}
				r.mu.Unlock()
				pass(10 * time.Minute)
				st := w.status()
				if r := st.RestoreTest; r == nil || r.Result != api.RestoreTestPassed || r.Key != st.Key {
					t.Errorf("the test is %+v, of the backup %s", r, st.Key)
				}
			})
		})
	}
}

// The alert EtcdBackupRestoreTestFailed looks at the result. While a test runs, it shows none.
func TestATestThatWasNotDoneShowsItForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(nil, api.RestoreTest{}))
		withRestorer(w).ends = api.RestoreStatus{Phase: api.RestorePhaseStarting}
		defer w.run()()
		pass(30 * time.Second)
		var results []api.RestoreTestResult
		for range 120 {
			pass(time.Minute)
			if st := w.status().RestoreTest; st != nil {
				results = append(results, st.Result)
			}
		}
		shown := 0
		for _, r := range results {
			if r == api.RestoreTestNotDone {
				shown++
			}
		}
		if shown < 30 || shown > 60 {
			t.Errorf("in two hours, it was shown for %d minutes: %q", shown, results)
		}
	})
}

func TestATestWhoseOperatorEndedIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(nil, api.RestoreTest{}))
		r := withRestorer(w)
		r.ends = api.RestoreStatus{Phase: api.RestorePhaseStarting}
		stop := w.run()
		pass(time.Minute)
		stop()
		if st := w.status().RestoreTest; st == nil || st.Result != api.RestoreTestRunning {
			t.Fatalf("status %+v", st)
		}
		if err := w.etcd.Tracker().Add(&api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "b-restore-test", UID: "r-1", Labels: map[string]string{api.RestoreTestLabel: string(testUID)},
		}}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		r.ends = api.RestoreStatus{Phase: api.RestorePhaseSucceeded}
		defer w.run()()
		pass(time.Minute)
		if st := w.status().RestoreTest; st.Result != api.RestoreTestPassed || len(r.left()) > 0 {
			t.Errorf("status %+v, %v are left", st, r.left())
		}
	})
}

// Nobody may want another test when the next operator begins.
func TestWhatATestHasMadeGoesAlthoughNoOtherTestFollows(t *testing.T) {
	for name, edit := range map[string]func(*api.EtcdBackup){
		"no more tests": func(obj *api.EtcdBackup) { obj.Spec.RestoreTest = nil },
		"suspended":     func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(hourly, api.RestoreTest{}))
				r := withRestorer(w)
				r.ends = api.RestoreStatus{Phase: api.RestorePhaseStarting}
				stop := w.run()
				pass(time.Minute)
				stop() // in order; a killed one leaves this:
				if err := w.etcd.Tracker().Add(&api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "b-restore-test", UID: "r-1", Labels: map[string]string{api.RestoreTestLabel: string(testUID)},
				}}); err != nil {
					t.Fatal(err)
				}
				if st := w.status().RestoreTest; st == nil || st.Result != api.RestoreTestRunning || len(r.left()) == 0 {
					t.Fatalf("status %+v, %v", st, r.left())
				}
				w.edit(edit)
				asked := len(r.asks)
				defer w.run()()
				pass(2 * time.Minute)
				if left := r.left(); len(left) > 0 || len(r.asks) != asked {
					t.Errorf("%v are left, and %d further tests ran", left, len(r.asks)-asked)
				}
				st := w.status().RestoreTest
				if name == "no more tests" && st != nil || name == "suspended" && (st == nil || st.Result != api.RestoreTestNotDone || !strings.Contains(st.Reason, "the operator ended")) {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

func TestADeletedEtcdBackupEndsItsTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(hourly, api.RestoreTest{}))
		r := withRestorer(w)
		r.ends = api.RestoreStatus{Phase: api.RestorePhaseStarting}
		defer w.run()()
		pass(10 * time.Second)
		if len(r.left()) == 0 {
			t.Fatal("no test runs")
		}
		w.remove()
		pass(time.Minute)
		if left := r.left(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// A registry with tags that have no leading v may lack those with one.
func TestACopyHasTheTagsOfTheCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		version   string
		literal   bool
		annotated bool
	}{
		"with a v":               {"3.5.9", false, false},
		"without a v":            {"3.5.9", true, true},
		"without a version":      {"", true, true},
		"with a v by the spec's": {"v3.5.9", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := tested(nil, api.RestoreTest{})
				obj.Spec.EtcdEndpoints, obj.Spec.EtcdCluster = nil, &api.EtcdClusterRef{Name: "c"}
				metav1.SetMetaDataAnnotation(&obj.ObjectMeta, api.ScopeAnnotation, api.ScopeClusterWide)
				w := newWorld(t, obj)
				if err := w.etcd.Tracker().Add(&api.EtcdCluster{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID("c")},
					Spec:       api.ClusterSpec{Repository: "mirror.example/etcd", Version: tt.version}, Status: api.ClusterStatus{LiteralTags: tt.literal},
				}); err != nil {
					t.Fatal(err)
				}
				test := &restoreTest{cfg: &w.cfg, obj: obj, status: api.BackupStatus{EtcdVersion: "3.5.9"}}
				template, err := test.template(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if a := template.Metadata.Annotations; (a[api.LiteralTagsAnnotation] == "true") != tt.annotated || a[api.ScopeAnnotation] != api.ScopeClusterWide {
					t.Errorf("annotations %v", a)
				}
			})
		})
	}
}

// The data of a cluster that asks for certificates must not become readable without one.
func TestACopyIsNotMoreReadableThanTheCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		spec   api.ClusterSpec
		backup func(*api.BackupSpec)
		want   string
		reason string
	}{
		"plain": {api.ClusterSpec{Repository: "mirror.example/etcd", Auth: &api.AuthPolicy{CredentialsSecret: "root"}}, nil, `{"auth":{"credentialsSecret":"root"},"repository":"mirror.example/etcd","size":1,"version":"3.6.16"}`, ""},
		"TLS":   {api.ClusterSpec{TLS: &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "s"}, OperatorSecret: "o"}}}, nil, "", "describe one with TLS in spec.restoreTest.clusterTemplate"},
		"a template": {api.ClusterSpec{TLS: &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "s"}, OperatorSecret: "o"}}}, func(s *api.BackupSpec) {
			s.RestoreTest.ClusterTemplate = &api.ClusterTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"size":3}`)}}
		}, `{"size":3,"version":"3.6.16"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := tested(nil, api.RestoreTest{})
				obj.Spec.EtcdEndpoints, obj.Spec.EtcdCluster = nil, &api.EtcdClusterRef{Name: "c"}
				if tt.backup != nil {
					tt.backup(&obj.Spec)
				}
				w := newWorld(t, obj)
				if err := w.etcd.Tracker().Add(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID("c")}, Spec: tt.spec}); err != nil {
					t.Fatal(err)
				}
				test := &restoreTest{cfg: &w.cfg, obj: obj, status: api.BackupStatus{EtcdVersion: "3.6.16"}}
				template, err := test.template(t.Context())
				if tt.reason != "" {
					if err == nil || !strings.Contains(err.Error(), tt.reason) {
						t.Errorf("error %v", err)
					}
					return
				}
				if err != nil || string(template.Spec.Raw) != tt.want {
					t.Errorf("error %v, spec %s", err, template.Spec.Raw)
				}
			})
		})
	}
}

func TestACopyOfEndpointsIsNotMoreReadableThanThey(t *testing.T) {
	for name, tt := range map[string]struct {
		backup func(*api.BackupSpec)
		want   string
		reason string
	}{
		"plain":               {func(*api.BackupSpec) {}, `{"size":1,"version":"3.6.16"}`, ""},
		"without a scheme":    {func(s *api.BackupSpec) { s.EtcdEndpoints = []string{"c-client:2379"} }, `{"size":1,"version":"3.6.16"}`, ""},
		"users":               {func(s *api.BackupSpec) { s.CredentialsSecret = "root" }, `{"auth":{"credentialsSecret":"root"},"size":1,"version":"3.6.16"}`, ""},
		"client certificates": {func(s *api.BackupSpec) { s.ClientTLSSecret = "tls" }, "", errReadable.Error()},
		"a public CA": {func(s *api.BackupSpec) {
			s.EtcdEndpoints = []string{"http://c-0:2379", "HTTPS://etcd.example.com:2379"}
		}, "", errReadable.Error()},
		"a public CA, and a template": {func(s *api.BackupSpec) {
			s.EtcdEndpoints = []string{"https://etcd.example.com:2379"}
			s.RestoreTest.ClusterTemplate = &api.ClusterTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"size":3}`)}}
		}, `{"size":3,"version":"3.6.16"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := tested(nil, api.RestoreTest{})
				tt.backup(&obj.Spec)
				w := newWorld(t, obj)
				test := &restoreTest{cfg: &w.cfg, obj: obj, status: api.BackupStatus{EtcdVersion: "3.6.16"}}
				template, err := test.template(t.Context())
				switch {
				case tt.reason != "" && (err == nil || err.Error() != tt.reason):
					t.Errorf("error %v", err)
				case tt.reason == "" && (err != nil || string(template.Spec.Raw) != tt.want):
					t.Errorf("error %v, spec %+v", err, template)
				}
			})
		})
	}
}

// The backup may be good: the template is what does not fit.
func TestATemplateOfAnOlderVersionSaysNothingOfTheBackup(t *testing.T) {
	for version, want := range map[string]string{"3.5.21": "spec.restoreTest.clusterTemplate.spec.version", "3.6.1": "", "latest": ""} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := tested(nil, api.RestoreTest{ClusterTemplate: &api.ClusterTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"size":1,"version":"` + version + `"}`)}}})
				w := newWorld(t, obj)
				test := &restoreTest{cfg: &w.cfg, obj: obj, status: api.BackupStatus{EtcdVersion: "3.6.16"}}
				_, err := test.template(t.Context())
				if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || errors.Is(err, errBad)) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestNamesOfTests(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"b", "nightly", "a.b", "a-b", "0-nightly", strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("y", 39), strings.Repeat("y", 40)} {
		got := testName(&api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name}})
		r := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: got}}
		r.Spec.EtcdCluster.Name = got
		if errs := api.ValidateEtcdRestore(r); strings.Contains(errs.ToAggregate().Error(), "metadata") || seen[got] {
			t.Errorf("%s becomes %s: %v", name, got, errs)
		}
		seen[got] = true
	}
}
