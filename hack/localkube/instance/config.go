// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Config is what `up` decided and the processes of the cluster obey. It
// lies in the state directory.
type Config struct {
	Instance
	Nodes int `json:"nodes"`
	// Directories with the programs.
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	// Containerd is the directory that each node's containerd begins with.
	Containerd string `json:"containerd"`
	// NodeMonitorGracePeriod is how long a silent node stays Ready.
	NodeMonitorGracePeriod time.Duration `json:"nodeMonitorGracePeriod"`
	// PodTolerationSeconds is how long pods stay on a node that is not Ready.
	PodTolerationSeconds int `json:"podTolerationSeconds"`
	// DNS names how long answers are kept: one of render.DNS.
	DNS string `json:"dns"`
	// SlowDisks has the directories of pods and volumes lie on a file system whose fsyncs
	// take as long as one wants.
	SlowDisks bool `json:"slowDisks,omitempty"`
}

// ConfigFile is where the Config lies.
func (i Instance) ConfigFile() string { return i.Path("config.json") }

// ReadConfig reads the Config of the instance with that state directory.
func ReadConfig(state string) (Config, error) {
	var c Config
	return c, readJSON(filepath.Join(state, "config.json"), &c)
}

// Write stores the Config in the state directory.
func (c Config) Write() error { return writeJSON(c.ConfigFile(), c) }

// A Record says which processes run an instance. The keeper writes it.
type Record struct {
	Keeper  Process   `json:"keeper"`
	Init    Process   `json:"init"`
	Started time.Time `json:"started"`
	ForPID  int       `json:"forPID,omitempty"`
}

// A Process is told from a later one with the same ID by its start time.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// RecordFile is where the Record lies.
func (i Instance) RecordFile() string { return i.Path("record.json") }

// ReadRecord reads the Record.
func (i Instance) ReadRecord() (Record, error) {
	var r Record
	return r, readJSON(i.RecordFile(), &r)
}

// WriteRecord stores the Record.
func (i Instance) WriteRecord(r Record) error { return writeJSON(i.RecordFile(), r) }

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces the file at once, so that a reader never sees half of it.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
