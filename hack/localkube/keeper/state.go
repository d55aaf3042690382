// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// CheckState fails if the state directory contains files that no local Kubernetes has left.
// Clean removes everything in it, and a user may name any directory of the machine.
func CheckState(i instance.Instance) error {
	entries, err := os.ReadDir(i.State)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state directory: %w", err)
	}
	if c, err := instance.ReadConfig(i.State); err == nil && c.State != "" && c.Nodes > 0 {
		return nil
	}
	// Its writer was killed.
	if partial := filepath.Base(i.ConfigFile()) + ".new"; len(entries) == 1 && entries[0].Name() == partial {
		return nil
	}
	return fmt.Errorf("the state directory %s contains %s, and no settings of a local Kubernetes: nothing is removed. "+
		"Empty it, or name a new directory with LOCALKUBE_STATE", i.State, entries[0].Name())
}

// removeState removes the state directory. The settings go last: a directory that is half
// removed still shows what it is.
func removeState(i instance.Instance) error {
	if err := CheckState(i); err != nil {
		return err
	}
	entries, err := os.ReadDir(i.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if path := i.Path(e.Name()); path != i.ConfigFile() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(i.State)
}
