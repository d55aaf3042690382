// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"errors"
	"fmt"
	"os"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// checkStarted fails if etcd has started in this pod before and its data is gone, as after the
// reboot of a node that keeps it in memory. Under its old ID, the member could vote a second
// time on entries that it has forgotten. A seed would start an empty cluster.
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
		return fmt.Errorf("etcd was started in this pod before, and %s holds no data of it now: this member must not start without its data, which could lose writes; "+
			"delete the pod, so that the operator replaces the member", dataDir)
	}
	return nil
}

// checkFirst fails if a new member finds data from before its pod. A claim can get a volume on which
// somebody has left the data of a former etcd. The member would start under the identity of that one,
// and could serve its data.
func checkFirst(marker, dataDir string) error {
	if _, err := os.Stat(marker); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look whether the member has begun in this pod: %w", err)
	}
	hasData, known, err := lookForData(dataDir)
	switch {
	case err != nil || !known:
		return err
	case hasData:
		return fmt.Errorf("the volume holds data of another etcd in %s, from before this pod: a new member must not start on it; "+
			"keep a copy if it matters, and empty the volume; or delete its PersistentVolumeClaim and then the pod", dataDir)
	}
	return datadir.WriteDurably(marker, "")
}

// lookForData reports whether a new member finds data. It is not known if this process may not look: etcd
// can't read the data either, and says so.
func lookForData(dataDir string) (hasData, known bool, err error) {
	hasData, err = datadir.HoldsData(dataDir)
	switch {
	case errors.Is(err, os.ErrPermission):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("look for data in %s: %w", dataDir, err)
	}
	return hasData, true, nil
}

// checkBegun fails if the first member of a new cluster finds the data of another etcd on its volume. The
// new cluster would serve that data.
func checkBegun(note, name, dataDir string) error {
	hasData, known, err := lookForData(dataDir)
	switch {
	case err != nil || !known:
		return err
	case !hasData:
		if err := datadir.WriteDurably(note, name); err != nil && !errors.Is(err, os.ErrPermission) { // etcd can't write either
			return fmt.Errorf("note whose data it will be: %w", err)
		}
		return nil
	}
	begun, err := os.ReadFile(note)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("look whose data is in %s: %w", dataDir, err)
	case string(begun) != name:
		return fmt.Errorf("the volume holds data of another etcd in %s, from before this cluster: its first member must not start on it; "+
			"if you need the data, set the PersistentVolume to Retain, delete the EtcdCluster, and import or restore the data; "+
			"otherwise empty the volume and delete the pod", dataDir)
	}
	return nil
}

// markStarted notes durably that etcd may start.
func markStarted(marker string) error {
	if err := datadir.WriteDurably(marker, ""); err != nil {
		return fmt.Errorf("note that etcd is started: %w", err)
	}
	return nil
}
