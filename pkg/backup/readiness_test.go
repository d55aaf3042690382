// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/readiness/readinesstest"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// condition is the one of Ready, Reconciling and Stalled that is True, with its reason.
func condition(t *testing.T, w *world) string {
	t.Helper()
	condition, reason, err := readinesstest.Judge(w.stored())
	if err != nil {
		t.Fatal(err)
	}
	return condition + " " + reason
}

// The world of these tests has kstatus judge each status that is written.
func TestReadyReconcilingAndStalled(t *testing.T) {
	denied := func(w *world) { w.store.fail("put", fmt.Errorf("put: %w", store.ErrDenied)) }
	for name, c := range map[string]struct {
		policy *api.BackupPolicy
		before func(w *world)
		after  time.Duration
		want   string
	}{
		"made once":                  {nil, nil, time.Minute, "Ready BackupComplete"},
		"on schedule":                {hourly, nil, time.Minute, "Ready Scheduled"},
		"before its first window":    {&api.BackupPolicy{Schedule: "0 12 * * *"}, nil, time.Minute, "Ready Scheduled"},
		"failed once":                {nil, denied, 0, "Reconciling Retrying"},
		"fails again and again":      {nil, denied, 20 * time.Minute, "Stalled BackupFailing"},
		"a schedule failed once":     {hourly, denied, 0, "Reconciling Retrying"},
		"a schedule fails for long":  {hourly, denied, 20 * time.Minute, "Stalled BackupFailing"},
		"a schedule is suspended":    {&api.BackupPolicy{Schedule: "0 12 * * *", Suspend: true}, nil, time.Minute, "Ready Suspended"},
		"a single one is suspended":  {&api.BackupPolicy{Suspend: true}, nil, time.Minute, "Stalled Suspended"},
		"a schedule that never ends": {&api.BackupPolicy{Schedule: "0 0 30 2 *"}, nil, time.Minute, "Stalled SpecRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(c.policy))
				if c.before != nil {
					c.before(w)
				}
				defer w.run()()
				pass(c.after)
				if got := condition(t, w); got != c.want {
					t.Errorf("%s, want %s: %+v", got, c.want, w.status())
				}
			})
		})
	}
}

// Whoever watches a schedule must not hear of each attempt.
func TestAScheduleStaysReadyWhileItsAttemptsSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		defer w.run()()
		first := w.stored().Status.Conditions
		pass(5*time.Hour + time.Minute)
		if w.status().Backups != 6 || len(first) != 3 {
			t.Fatalf("%d backups, conditions %v", w.status().Backups, first)
		}
		for i, c := range w.stored().Status.Conditions {
			if c != first[i] {
				t.Errorf("the condition %v became %v", first[i], c)
			}
		}
	})
}
