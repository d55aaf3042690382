// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Hinder applies a rule of nftables to a pod's outgoing packets, such as "tcp sport 80 limit
// rate over 1 mbytes/second drop", until it is released or the pod ends. program runs in the
// pod.
func (n *Namespace) Hinder(pod *corev1.Pod, program, rule string) (release func()) {
	n.t.Helper()
	return n.hinder(pod, program, "output", rule)
}

// HinderReceiving is Hinder for incoming packets.
func (n *Namespace) HinderReceiving(pod *corev1.Pod, program, rule string) (release func()) {
	n.t.Helper()
	return n.hinder(pod, program, "input", rule)
}

// hinder applies a rule at a hook of nftables: output or input.
func (n *Namespace) hinder(pod *corev1.Pod, program, hook, rule string) (release func()) {
	n.t.Helper()
	pid, err := Process(pod, program)
	if err != nil {
		n.t.Fatalf("hinder pod %s: %v", pod.Name, err)
	}
	// The program may end before the rule is released; the network stays.
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		n.t.Fatalf("hinder pod %s: %v", pod.Name, err)
	}
	table := "inet hinder" + strconv.FormatInt(time.Now().UnixNano(), 36)
	nft := func(ctx context.Context, command string) error {
		enter := exec.CommandContext(ctx, "nsenter", "--net=/proc/self/fd/3", "nft", command)
		enter.ExtraFiles = []*os.File{network}
		out, err := enter.CombinedOutput()
		if err != nil {
			return fmt.Errorf("nft %s: %w: %s", command, err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	for _, command := range []string{
		"add table " + table, "add chain " + table + " packets { type filter hook " + hook + " priority 0; }", "add rule " + table + " packets " + rule,
	} {
		if err := nft(n.t.Context(), command); err != nil {
			n.t.Fatalf("hinder pod %s: %v", pod.Name, err)
		}
	}
	n.record.addState("pod "+pod.Name+" hindered", hook+": "+rule)
	return sync.OnceFunc(func() {
		n.t.Helper()
		ctx, cancel := later(n.t.Context(), 10*time.Second)
		defer cancel()
		defer network.Close()
		if err := nft(ctx, "delete table "+table); err != nil {
			n.t.Errorf("hinder pod %s no longer: %v", pod.Name, err)
		}
		n.record.addState("pod "+pod.Name+" hindered", "no longer")
	})
}
