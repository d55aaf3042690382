//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// watchMemory samples the memory of a process that no file backs, and that the kernel could not take back.
// Pages of a mapped database do not count. The function that it returns ends the sampling.
func watchMemory(pid int) (peak func() int64) {
	stop, highest := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for pause := time.NewTicker(50 * time.Millisecond); ; {
			// A process that has ended has none.
			if now, err := statusBytes(pid, "RssAnon"); err == nil {
				most = max(most, now)
			}
			select {
			case <-pause.C:
			case <-stop:
				pause.Stop()
				highest <- most
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-highest
	}
}

// statusBytes reads a field of /proc/PID/status in bytes.
func statusBytes(pid int, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("the status of process %d has no %s", pid, field)
}
