// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process halts programs that tests run.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Stop sends SIGSTOP and returns when no thread of the process runs any more. The signal alone
// is not enough: one thread must receive it first, and on a loaded machine the others run
// until then.
func Stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("send SIGSTOP to process %d: %w", pid, err)
	}
	return AwaitStopped(pid)
}

// AwaitStopped waits until no thread of a process runs, after a SIGSTOP.
func AwaitStopped(pid int) error {
	const patience = 30 * time.Second
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		running, err := runs(pid)
		if err != nil || !running {
			return err
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("process %d has not stopped %s after SIGSTOP", pid, patience)
		}
	}
}

// runs reports whether a thread of a process has not stopped; see proc_pid_stat(5).
func runs(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		// The name before the state may contain any character, even parentheses.
		_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if !strings.HasPrefix(rest, "T") && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X") {
			return true, nil
		}
	}
	return false, nil
}
