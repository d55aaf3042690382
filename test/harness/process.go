// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// The images have no shell, so nothing in a pod can kill its process. But the local
// Kubernetes' nodes share this machine's processes, and a process's cgroup names its pod.

// commLength is how much of a program's name the kernel keeps.
const commLength = 15

// Process returns the ID, on this machine, of a program that runs in a pod.
func Process(pod *corev1.Pod, program string) (int, error) {
	cgroups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	for _, path := range cgroups {
		cgroup, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(cgroup), string(pod.UID)) {
			continue // processes start and end meanwhile
		}
		dir := filepath.Dir(path)
		exe, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || strings.TrimSpace(string(exe)) != program[:min(len(program), commLength)] {
			continue
		}
		return strconv.Atoi(filepath.Base(dir))
	}
	return 0, fmt.Errorf("no process %s of pod %s (UID %s) runs on this machine", program, pod.Name, pod.UID)
}

func killProcess(pod *corev1.Pod, program string, signal syscall.Signal) error {
	pid, err := Process(pod, program)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %v to process %d (%s of pod %s): %w", signal, pid, program, pod.Name, err)
	}
	return nil
}

// ResidentBytes returns the resident memory of a program in a pod.
func ResidentBytes(pod *corev1.Pod, program string) (int64, error) {
	pid, err := Process(pod, program)
	if err != nil {
		return 0, err
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm holds %q", pid, statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
