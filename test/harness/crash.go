// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// CrashOperator kills the operator's process with SIGKILL as soon as it runs. The kubelet
// restarts it in the same pod.
func (n *Namespace) CrashOperator() {
	n.t.Helper()
	n.crash(operatorApp, &n.crashes)
}

// CrashBackupOperator is CrashOperator for the backup operator.
func (n *Namespace) CrashBackupOperator() {
	n.t.Helper()
	n.crash(backupApp, &n.backupCrashes)
}

// CrashRestoreOperator is CrashOperator for the restore operator.
func (n *Namespace) CrashRestoreOperator() {
	n.t.Helper()
	n.crash(restoreApp, &n.restoreCrashes)
}

// crash kills the processes of one of our programs, as soon as one runs.
func (n *Namespace) crash(app string, crashes *atomic.Int64) {
	n.t.Helper()
	Wait(n.t, app+" crashed", operatorUp, func(context.Context) error {
		return n.tryCrash(app, crashes)
	})
}

// tryCrash kills the running processes of one of our programs. Some known pods may be gone or
// starting: one process is enough.
func (n *Namespace) tryCrash(app string, crashes *atomic.Int64) error {
	errs := []error{errors.New("no process of " + app + " runs")}
	killed := false
	for _, pod := range n.podsOf(app) {
		// The count comes first: the kubelet may be faster.
		crashes.Add(1)
		if err := killProcess(pod, app, syscall.SIGKILL); err != nil {
			crashes.Add(-1)
			errs = append(errs, err)
			continue
		}
		killed = true
	}
	if killed {
		return nil
	}
	return errors.Join(errs...)
}

// TryCrashOperator is CrashOperator for when the operator may be down already.
func (n *Namespace) TryCrashOperator() error { return n.tryCrash(operatorApp, &n.crashes) }

// CrashContainer kills a program in a pod that is not an operator's, such as one of our init
// containers.
func (n *Namespace) CrashContainer(pod *corev1.Pod, program string) {
	n.t.Helper()
	if err := killProcess(pod, program, syscall.SIGKILL); err != nil {
		n.t.Fatalf("crash %s: %v", program, err)
	}
}
