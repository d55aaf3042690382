// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/network"
	nodeagent "github.com/etcd-operator/etcd-operator/hack/localkube/node"
	"github.com/etcd-operator/etcd-operator/hack/localkube/nsinit"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
)

// States of a node's machine.
const (
	running = "running"
	killed  = "killed"
	cutOff  = "cut off"
)

// errNodeState is wrapped by answers to commands that do not fit the state.
var errNodeState = errors.New("the node is not in the right state for that")

// A node is one machine, seen from outside.
type node struct {
	name   string
	config instance.Config

	mu    sync.Mutex
	child *nsinit.Child // nil when killed
	ended chan struct{} // closed when the child is gone
	cut   bool
}

// NodeStatus is the report about a node.
type NodeStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

func (n *node) status() NodeStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := NodeStatus{Name: n.name, State: running}
	switch {
	case !n.alive():
		st.State = killed
	case n.cut:
		st.State = cutOff
	}
	return st
}

func (n *node) alive() bool {
	if n.child == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// boot starts a node's machine, which runs until ctx ends.
func (s *Supervisor) boot(ctx context.Context, n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return fmt.Errorf("%s runs already: %w", n.name, errNodeState)
	}
	if err := os.MkdirAll(n.config.Path("logs"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(n.config.Log("node-"+n.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	child, err := nsinit.Start(ctx, log, nil, nodeagent.Role, n.config.State, n.name)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	ended := make(chan struct{})
	n.child, n.ended, n.cut = child, ended, false
	go func() {
		defer close(ended)
		// The node's log shows how it ended.
		_ = child.Cmd.Wait()
	}()
	if err := network.AttachNode(ctx, n.config, n.name, child.Cmd.Process.Pid); err != nil {
		return errors.Join(err, child.Cmd.Process.Kill())
	}
	return child.Proceed()
}

// kill ends a node's machine like a power cut.
func (n *node) kill(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return fmt.Errorf("%s is killed already: %w", n.name, errNodeState)
	}
	if err := n.child.Cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", n.name, err)
	}
	select {
	case <-n.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s was killed, but its processes are not gone yet: %w", n.name, ctx.Err())
	}
}

// wipe empties the disks of a killed node, like a new installation: the pods' data in
// directories of the node and on its volumes are gone. Images stay.
func (n *node) wipe() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return fmt.Errorf("%s runs, kill it first: %w", n.name, errNodeState)
	}
	for _, dir := range []string{nodeagent.Kubelet, render.Volumes} {
		dir = n.config.NodeDir(n.name, dir)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("wipe %s: %w", n.name, err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("wipe %s: %w", n.name, err)
		}
	}
	return nil
}

// connect sets the node's link up or down.
func (n *node) connect(ctx context.Context, up bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return fmt.Errorf("%s is killed, start it first: %w", n.name, errNodeState)
	}
	if err := network.SetLink(ctx, n.name, up); err != nil {
		return err
	}
	n.cut = !up
	return nil
}

// allNodes returns the nodes in the order of their numbers.
func (s *Supervisor) allNodes() []*node {
	var all []*node
	for i := 1; i <= s.config.Nodes; i++ {
		if n := s.nodes[instance.NodeName(i)]; n != nil {
			all = append(all, n)
		}
	}
	return all
}

func (s *Supervisor) node(name string) (*node, error) {
	if n := s.nodes[name]; n != nil {
		return n, nil
	}
	var names []string
	for n := range s.nodes {
		names = append(names, n)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("there is no node %q: the nodes are %s", name, strings.Join(names, ", "))
}
