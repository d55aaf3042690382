// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
)

// The request was done, so the step does not come again, which would end the trouble.
func TestALostAnswerDoesNotStayInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(2)
		const lost = "the answer is lost"
		lose := 1
		w.after = func(verb, resource, _ string, action clienttesting.Action) error {
			if verb != "create" || resource != "etcdclusters" || lose == 0 || len(action.(clienttesting.CreateActionImpl).CreateOptions.DryRun) > 0 {
				return nil
			}
			lose--
			return errors.New(lost)
		}
		w.fetch = func(backupserver.Backup) bool { return false }
		w.add("etcdrestores", testRestore())
		defer w.run()()
		w.await("the new cluster", time.Minute, in(api.RestorePhaseStarting, w))
		w.live(time.Minute)
		if reason := w.restore().Status.Reason; lose != 0 || strings.Contains(reason, lost) || !strings.Contains(reason, "waiting for the first member") {
			t.Errorf("%d answers are left to lose; the reason is %q", lose, reason)
		}
	})
}

// It stays as long as the step is due, through all retries.
func TestATroubleGoesWithItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(2)
		refused := errors.New("refused for now")
		w.hinder(func(verb, resource, _ string, _ clienttesting.Action) error {
			if verb == "delete" && resource == "pods" {
				return refused
			}
			return nil
		})
		w.add("etcdrestores", testRestore())
		defer w.run()()
		w.await("the trouble", time.Minute, func() bool {
			st := w.restore().Status
			return st.Phase == api.RestorePhaseStopping && strings.Contains(st.Reason, refused.Error()+"; it is tried again")
		})
		w.live(10 * time.Minute)
		if reason := w.restore().Status.Reason; !strings.Contains(reason, refused.Error()) {
			t.Errorf("the trouble continues, and the reason is %q", reason)
		}
		w.change(func() {
			for _, p := range w.all("pods") { // somebody has helped
				delete(w.objects, named("pods", p.GetName()))
			}
		})
		w.etcdOperator = false
		w.await("the new cluster", 7*time.Minute, in(api.RestorePhaseStarting, w))
		if reason := w.restore().Status.Reason; strings.Contains(reason, refused.Error()) {
			t.Errorf("the reason is %q", reason)
		}
	})
}
