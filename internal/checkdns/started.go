// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// checkStarted fails where etcd was let go before and its data is gone since, as
// after the reboot of a node that keeps it in memory: under its old ID it could
// vote a second time on what it has forgotten, and a seed would start an empty
// cluster.
func checkStarted(marker, dataDir string) error {
	if _, err := os.Stat(marker); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look whether etcd was started in this pod before: %w", err)
	}
	hasData, err := datadir.HoldsData(dataDir)
	switch {
	case err != nil:
		return fmt.Errorf("look for the member's data in %s: %w", dataDir, err)
	case !hasData:
		return fmt.Errorf("etcd was started in this pod before, and %s holds no data of it now: this member must not start without its data, for it could lose writes; "+
			"delete the pod, so that the member is replaced", dataDir)
	}
	return nil
}

// markStarted notes that etcd is let go, so that a crash of the node doesn't undo
// it.
func markStarted(marker string) error {
	f, err := os.OpenFile(marker, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note that etcd is started: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("note that etcd is started: %w", err)
	}
	dir, err := os.Open(filepath.Dir(marker))
	if err != nil {
		return fmt.Errorf("note that etcd is started: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("note that etcd is started: %w", err)
	}
	return nil
}
