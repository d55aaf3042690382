// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the supervisor: it runs inside the cluster's namespaces,
// starts control plane and nodes, and takes commands about nodes.
package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/hack/localkube/daemon"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/kubeapi"
	"github.com/etcd-operator/etcd-operator/hack/localkube/network"
	"github.com/etcd-operator/etcd-operator/hack/localkube/progress"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// Role is the argument with which this program acts as the supervisor.
const Role = "__cluster"

// startTimeout bounds the start of a whole cluster: generous, for a machine
// that is busy with something else.
const startTimeout = 4 * time.Minute

// A Supervisor owns a running cluster.
type Supervisor struct {
	config instance.Config
	api    *kubeapi.Client
	report *progress.Writer
	group  *errgroup.Group

	nodes map[string]*node // never changes

	mu      sync.Mutex
	daemons []*daemon.Daemon
}

// Run starts the cluster, reports its progress, and keeps the cluster until ctx ends or an
// essential part fails.
func Run(ctx context.Context, state string, report *progress.Writer) error {
	c, err := instance.ReadConfig(state)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	s := &Supervisor{config: c, report: report, group: group, nodes: map[string]*node{}}
	for n := 1; n <= c.Nodes; n++ {
		name := instance.NodeName(n)
		s.nodes[name] = &node{name: name, config: c}
	}
	group.Go(func() error {
		start, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not there after %s", startTimeout))
		defer cancel()
		if err := s.start(ctx, start); err != nil {
			report.Failed(err)
			return err
		}
		report.Ready()
		return nil
	})
	group.Go(func() error { return s.serve(ctx) })
	return group.Wait()
}

// start starts all components. They live until ctx ends; bound limits only the wait for them.
func (s *Supervisor) start(ctx, bound context.Context) error {
	c := s.config
	if err := network.SetUpCluster(bound, c); err != nil {
		return err
	}
	if err := s.credentials(); err != nil {
		return err
	}
	for _, n := range s.allNodes() {
		if err := s.boot(ctx, n); err != nil {
			return err
		}
	}
	if err := s.controlPlane(ctx, bound); err != nil {
		return err
	}
	s.report.Step("API server")

	g, bound := errgroup.WithContext(bound)
	g.Go(func() error { return s.addons(ctx, bound) })
	g.Go(func() error {
		if err := wait.Until(bound, "the nodes to be Ready", s.nodesReady); err != nil {
			return s.explain(err)
		}
		s.report.Step("nodes")
		return nil
	})
	g.Go(func() error {
		return wait.Until(bound, "the default service account", func(ctx context.Context) error {
			return s.api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
		})
	})
	return g.Wait()
}

// run starts a program of the control plane.
func (s *Supervisor) run(ctx context.Context, name, path string, args ...string) {
	d := &daemon.Daemon{Name: name, Path: path, Args: args, Log: s.config.Log(name)}
	s.mu.Lock()
	s.daemons = append(s.daemons, d)
	s.mu.Unlock()
	s.group.Go(func() error { return d.Run(ctx) })
}

// controlPlane returns when the API server is ready. It starts the others after that, because
// they would wait for seconds after a failed first attempt.
func (s *Supervisor) controlPlane(ctx, bound context.Context) error {
	c := s.config
	s.run(ctx, "etcd", filepath.Join(c.Etcd, "etcd"), render.Etcd(c)...)
	healthy := func(ctx context.Context) error {
		return kubeapi.Get(ctx, http.DefaultClient, render.EtcdURL+"/health", nil)
	}
	if err := wait.Until(bound, "etcd", healthy); err != nil {
		return s.withLog(err, "etcd")
	}
	s.run(ctx, "apiserver", filepath.Join(c.Kubernetes, "kube-apiserver"), render.APIServer(c)...)
	if err := wait.Until(bound, "the API server", s.api.Ready); err != nil {
		return s.withLog(err, "apiserver")
	}
	s.run(ctx, "controller-manager", filepath.Join(c.Kubernetes, "kube-controller-manager"), render.ControllerManager(c)...)
	s.run(ctx, "scheduler", filepath.Join(c.Kubernetes, "kube-scheduler"), render.Scheduler(c)...)
	s.run(ctx, "coredns", filepath.Join(c.Kubernetes, "coredns"), "-conf", c.Path("Corefile"))
	s.run(ctx, "kube-proxy-host", filepath.Join(c.Kubernetes, "kube-proxy"), "--config", c.Path("kube-proxy-host.yaml"))
	return nil
}

// addons applies the cluster's initial objects, and starts their programs.
func (s *Supervisor) addons(ctx, bound context.Context) error {
	c := s.config
	apply := func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, filepath.Join(c.Kubernetes, "kubectl"),
			"--kubeconfig", c.Path("kubeconfigs/admin"), "apply", "--validate=false", "-f", "-")
		cmd.Env = append(os.Environ(), "KUBECACHEDIR="+c.Path("kubectl-cache"))
		cmd.Stdin = strings.NewReader(render.Addons())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply: %w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	}
	if err := wait.Until(bound, "the storage class", apply); err != nil {
		return err
	}
	s.run(ctx, "local-path-provisioner", filepath.Join(c.Kubernetes, "local-path-provisioner"), render.LocalPathProvisioner(c)...)
	ready := func(ctx context.Context) error {
		return kubeapi.Get(ctx, http.DefaultClient, render.CoreDNSReady(c), nil)
	}
	if err := wait.Until(bound, "CoreDNS", ready); err != nil {
		return s.withLog(err, "coredns")
	}
	s.report.Step("DNS and storage")
	return nil
}

func (s *Supervisor) nodesReady(ctx context.Context) error {
	nodes, err := s.api.Nodes(ctx)
	if err != nil {
		return err
	}
	ready := 0
	last := "none has registered"
	for _, n := range nodes {
		if ok, why := n.Ready(); ok {
			ready++
		} else {
			last = n.Metadata.Name + ": " + why
		}
	}
	if ready < s.config.Nodes {
		for _, n := range s.allNodes() {
			if st := n.status(); st.State == killed {
				return fmt.Errorf("%s has stopped: see its log", n.name)
			}
		}
		return fmt.Errorf("%d of %d are Ready; %s", ready, s.config.Nodes, last)
	}
	return nil
}

// explain adds the ends of the logs of nodes that are not Ready.
func (s *Supervisor) explain(err error) error {
	for _, n := range s.allNodes() {
		for _, program := range []string{"node", "kubelet", "containerd"} {
			err = s.withLog(err, program+"-"+n.name)
		}
	}
	return err
}

// withLog adds the end of a component's log to an error.
func (s *Supervisor) withLog(err error, component string) error {
	b, readErr := os.ReadFile(s.config.Log(component))
	if readErr != nil || len(bytes.TrimSpace(b)) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	lines = lines[max(0, len(lines)-8):]
	return fmt.Errorf("%w\n--- end of the log of %s:\n%s", err, component, strings.Join(lines, "\n"))
}
