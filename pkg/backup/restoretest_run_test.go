// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// fail answers the first requests of a kind with an error, once a test has begun, or its removal.
func (r *restorer) fail(verb, resource string, times int, err error) {
	removal := false
	r.w.etcd.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		matches := a.Matches(verb, resource) && len(r.asks) > 0 && (removal || resource != "etcdclusters")
		removal = removal || a.Matches("delete", "etcdrestores")
		if !matches || times == 0 {
			return false, nil, nil
		}
		times--
		return true, nil, err
	})
}

// results are those that the status has shown.
func (w *world) results() (results, reasons string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.statuses {
		if st.RestoreTest != nil {
			results += " " + string(st.RestoreTest.Result)
			reasons += st.RestoreTest.Reason + "\n"
		}
	}
	return results, reasons
}

// A test asks the API server for minutes, every two seconds. One answer that says nothing must not end it.
func TestATestOutlivesAnAPIServerThatIsBusy(t *testing.T) {
	for name, tt := range map[string]struct {
		verb, resource string
		err            error
	}{
		"the look at the EtcdRestore": {"get", "etcdrestores", apierrors.NewServiceUnavailable("etcd restarts")},
		"no connection":               {"get", "etcdrestores", errors.New("connection refused")},
		"the removal":                 {"delete", "etcdrestores", apierrors.NewTooManyRequestsError("later")},
		"the look at the EtcdCluster": {"get", "etcdclusters", apierrors.NewInternalError(errors.New("etcdserver: request timed out"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(nil, api.RestoreTest{}))
				r := withRestorer(w)
				r.fail(tt.verb, tt.resource, 20, tt.err)
				defer w.run()()
				pass(3 * time.Minute)
				results, reasons := w.results()
				if st := w.status().RestoreTest; st == nil || st.Result != api.RestoreTestPassed || strings.Contains(results, string(api.RestoreTestNotDone)) {
					t.Errorf("the results were%s, with the reasons\n%s", results, reasons)
				}
				if !strings.Contains(reasons, "the test waits for an answer of the API server: ") || !strings.Contains(reasons, tt.err.Error()) {
					t.Errorf("the status does not say what the test waits for:\n%s", reasons)
				}
				if left := r.left(); len(left) > 0 || len(r.asks) != 1 {
					t.Errorf("%v are left after %d tests", left, len(r.asks))
				}
			})
		})
	}
}

// The time for the test bounds this, too.
func TestATestDoesNotWaitForeverForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tested(nil, api.RestoreTest{TimeoutInSecond: 60}))
		withRestorer(w).fail("get", "etcdrestores", 1000, apierrors.NewServiceUnavailable("etcd restarts"))
		defer w.run()()
		pass(3 * time.Minute)
		const want = "after 1m0s (spec.restoreTest.timeoutInSecond); it waited for: an answer of the API server: "
		if st := w.status().RestoreTest; st == nil || st.Result != api.RestoreTestNotDone || !strings.Contains(st.Reason, want) {
			t.Errorf("status %+v", st)
		}
	})
}

// What the API server says for good ends a test at once.
func TestATestThatIsRefusedSaysSoAtOnce(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden":    apierrors.NewForbidden(api.Resource("etcdrestores"), "b-restore-test", nil),
		"unauthorized": apierrors.NewUnauthorized("no"),
		"gone":         apierrors.NewNotFound(api.Resource("etcdrestores"), "b-restore-test"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(nil, api.RestoreTest{}))
				withRestorer(w).fail("get", "etcdrestores", 1, err)
				defer w.run()()
				pass(30 * time.Second)
				if st := w.status().RestoreTest; st == nil || st.Result != api.RestoreTestNotDone || !strings.Contains(st.Reason, "look at the EtcdRestore b-restore-test") {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// Kubernetes collects the EtcdCluster when it gets round to it. The next test says if it never does.
func TestATestKeepsItsResultWhileKubernetesCollects(t *testing.T) {
	for name, tt := range map[string]struct {
		policy *api.BackupPolicy
		keeps  time.Duration
		change func(*restorer)
		result api.RestoreTestResult
		later  api.RestoreTestResult // after the next backup
	}{
		"passed":             {hourly, 2 * time.Minute, func(*restorer) {}, api.RestoreTestPassed, api.RestoreTestPassed},
		"failed":             {hourly, 2 * time.Minute, func(r *restorer) { r.contents.Revision = 1 }, api.RestoreTestFailed, api.RestoreTestFailed},
		"it is never gone":   {hourly, 9 * time.Hour, func(*restorer) {}, api.RestoreTestPassed, api.RestoreTestNotDone},
		"no test follows":    {nil, 2 * time.Minute, func(*restorer) {}, api.RestoreTestPassed, api.RestoreTestPassed},
		"nothing is removed": {hourly, 0, func(r *restorer) { r.fail("delete", "etcdrestores", 40, errors.New("refused")) }, api.RestoreTestNotDone, api.RestoreTestPassed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tested(tt.policy, api.RestoreTest{}))
				r := withRestorer(w)
				w.etcd.PrependReactor("delete", "etcdrestores", func(clienttesting.Action) (bool, runtime.Object, error) {
					if tt.keeps == 0 {
						return false, nil, nil
					}
					time.AfterFunc(tt.keeps, func() {
						_ = w.etcd.Tracker().Delete(clustersResource, "ns", "b-restore-test")
						_ = w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", "b-restore-test-0")
					})
					return true, nil, w.etcd.Tracker().Delete(restoresResource, "ns", "b-restore-test")
				})
				tt.change(r)
				defer w.run()()
				pass(90 * time.Second)
				if st := w.status().RestoreTest; st == nil || st.Result != tt.result {
					t.Errorf("status %+v, want %s", st, tt.result)
				}
				if !strings.Contains(w.log(), "left something behind") {
					t.Error("the log says nothing of what is left")
				}
				pass(79 * time.Minute)
				if st := w.status().RestoreTest; st == nil || st.Result != tt.later {
					t.Errorf("later, the status is %+v, want %s", st, tt.later)
				}
			})
		})
	}
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.String()
}
