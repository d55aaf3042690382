// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/daemon"
)

// commandTimeout bounds a command about a node.
const commandTimeout = 20 * time.Second

// Status is what the supervisor knows of its cluster.
type Status struct {
	Nodes      []NodeStatus   `json:"nodes"`
	Components []daemon.State `json:"components"`
}

// serve answers commands on the unix socket until ctx ends.
func (s *Supervisor) serve(ctx context.Context) error {
	socket := s.config.Socket()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, s.status(), nil)
	})
	mux.HandleFunc("POST /nodes/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, s.command(ctx, r))
	})
	mux.HandleFunc("POST /components/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, s.signal(r.PathValue("name"), r.PathValue("verb")))
	})
	server := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// command carries out a command about a node. A node that is started lives as
// long as the cluster, not as long as the request.
func (s *Supervisor) command(ctx context.Context, r *http.Request) error {
	request, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	n, err := s.node(r.PathValue("name"))
	if err != nil {
		return err
	}
	switch r.PathValue("verb") {
	case "kill":
		return n.kill(request)
	case "wipe":
		return n.wipe()
	case "start":
		return s.boot(ctx, n)
	case "cut":
		return n.connect(request, false)
	case "heal":
		return n.connect(request, true)
	default:
		return errors.New("a node can be told kill, wipe, start, cut or heal")
	}
}

// signals are what a program of the control plane can be told.
var signals = map[string]os.Signal{"stop": syscall.SIGSTOP, "continue": syscall.SIGCONT, "kill": syscall.SIGKILL}

// signal stops a program of the control plane, lets it continue, or kills it; one that
// is killed is started again.
func (s *Supervisor) signal(name, verb string) error {
	signal, known := signals[verb]
	if !known {
		return errors.New("a component can be told stop, continue or kill")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.daemons {
		if d.Name == name {
			return d.Signal(signal)
		}
	}
	return fmt.Errorf("there is no component %q: `hack/kube status` lists them", name)
}

func (s *Supervisor) status() Status {
	var st Status
	for _, n := range s.allNodes() {
		st.Nodes = append(st.Nodes, n.status())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.daemons {
		st.Components = append(st.Components, d.State())
	}
	return st
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		v = map[string]string{"error": err.Error()}
	}
	// The client is gone if this fails; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(v)
}
