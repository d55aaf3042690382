// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon keeps a program running.
package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// backoff is how long a program that ended is left alone.
const backoff = time.Second

// collect lets the programs, all written in Go, collect garbage less often than by
// default: their heaps are small, and what is scarce is the processor.
const collect = "GOGC=400"

// A Daemon is a program that is started again whenever it ends.
type Daemon struct {
	Name string
	Path string
	Args []string
	Log  string

	mu      sync.Mutex
	state   State
	process *os.Process // nil while none runs
}

// State is what is known of a Daemon.
type State struct {
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	Running  bool      `json:"running"`
	LastExit string    `json:"lastExit,omitempty"`
}

// State returns the state now.
func (d *Daemon) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Name = d.Name
	return d.state
}

// Signal sends a signal to the program.
func (d *Daemon) Signal(signal os.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return fmt.Errorf("%s does not run", d.Name)
	}
	return d.process.Signal(signal)
}

// Run keeps the program running until ctx ends. It fails only if the program
// cannot be started at all.
func (d *Daemon) Run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(d.Log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", d.Name, err)
	}
	defer log.Close()
	for {
		cmd := exec.CommandContext(ctx, d.Path, d.Args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = append(os.Environ(), collect)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start %s: %w", d.Name, err)
		}
		d.runs(cmd.Process)
		d.set(func(s *State) { s.Since, s.Running = time.Now(), true })
		err := cmd.Wait()
		d.runs(nil)
		exit := "exit status 0"
		if err != nil {
			exit = err.Error()
		}
		d.set(func(s *State) { s.Since, s.Running, s.LastExit = time.Now(), false, exit })
		if wait.For(ctx, backoff) != nil {
			return nil // told to end
		}
		fmt.Fprintf(log, "--- %s ended (%s) and is started again\n", d.Name, exit)
		d.set(func(s *State) { s.Restarts++ })
	}
}

func (d *Daemon) runs(process *os.Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.process = process
}

func (d *Daemon) set(change func(*State)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.state)
}
