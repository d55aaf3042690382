// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstProcess is the first process of a container. The launcher has become etcd there.
const firstProcess = 1

// stop ends etcd, of which a process has to be the one. The kubelet then starts the container
// again, and the data stays in the pod. etcd's images have no shell and no kill.
func stop(process int, stdout io.Writer) error {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/comm")
	if err != nil {
		return fmt.Errorf("look at process %d: %w", process, err)
	}
	switch name := strings.TrimSpace(string(name)); name {
	case "etcd":
	case "etcd-launcher":
		return fmt.Errorf("process %d is etcd-launcher: it waits for the other members, and etcd has not started here", process)
	default:
		return fmt.Errorf("process %d is %s, not etcd: run this command in the container etcd of a pod whose containers do not share their processes", process, name)
	}
	// With the first process of the container, the kernel kills this one.
	fmt.Fprintln(stdout, "etcd ends now. Kubernetes starts it again in this pod, with its data")
	if err := syscall.Kill(process, syscall.SIGTERM); err != nil {
		return fmt.Errorf("send SIGTERM to etcd, process %d: %w", process, err)
	}
	return nil
}
