// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// throttles are the cgroup files that limit the processor time of a cgroup's processes, and
// their contents, by the version of cgroups.
var throttles = []struct{ file, little, all string }{
	{"cpu.cfs_quota_us", "5000", "-1"},
	{"cpu.max", "5000 100000", "max 100000"},
}

// Throttle limits a pod's processes to a twentieth of one processor until it is released:
// their work takes so long that a test can't miss it. program runs in the pod.
func (n *Namespace) Throttle(pod *corev1.Pod, program string) (release func()) {
	n.t.Helper()
	pid, err := Process(pod, program)
	if err != nil {
		n.t.Fatalf("throttle pod %s: %v", pod.Name, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		n.t.Fatalf("throttle pod %s: %v", pod.Name, err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		hierarchy := "" // of version 2
		if fields[1] != "" {
			if !slices.Contains(strings.Split(fields[1], ","), "cpu") {
				continue
			}
			hierarchy = fields[1]
		}
		// The pod's cgroup contains those of its containers.
		dir := filepath.Join("/sys/fs/cgroup", hierarchy, filepath.Dir(fields[2]))
		for _, throttle := range throttles {
			file := filepath.Join(dir, throttle.file)
			if _, err := os.Stat(file); err != nil {
				continue
			}
			if err := os.WriteFile(file, []byte(throttle.little), 0); err != nil {
				n.t.Fatalf("throttle pod %s: %v", pod.Name, err)
			}
			n.record.addState("pod "+pod.Name+" throttled", throttle.little)
			return sync.OnceFunc(func() {
				n.t.Helper()
				if err := os.WriteFile(file, []byte(throttle.all), 0); err != nil && !os.IsNotExist(err) {
					n.t.Errorf("throttle pod %s no longer: %v", pod.Name, err)
				}
				n.record.addState("pod "+pod.Name+" throttled", "no longer")
			})
		}
	}
	n.t.Fatalf("throttle pod %s: no cgroup of it has a limit on processors: %s", pod.Name, text)
	return nil
}
