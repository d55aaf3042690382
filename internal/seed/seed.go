// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seed is the two init containers of a cluster's first member that starts on
// a backup: one fetches the backup (Fetch), the other makes a data directory of it
// with etcd's own tool (Restore). The second runs in etcd's image, which has no shell
// and nothing of the operator's, so the first leaves its program there.
//
// Both may be ended at any moment and are run again, also long after the restore, when
// the pod's node has restarted. What they find on the disk tells them what is left to
// do; what is complete has its final name, and only that.
package seed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// Files in the directory that the two containers share.
const (
	snapshotFile = "snapshot.db"      // the whole backup
	partFile     = "snapshot.db.part" // what has arrived of it
	programFile  = "etcd-operator"    // for the container without a program of ours
	doneFile     = "done"             // the data directory was made
)

// progress tells whether the data directory was made in this pod, or for this member
// in an earlier one. It is an error if it was and is gone: the member has served
// since, maybe, and with the backup's data under its old ID it could vote a second
// time on what it has forgotten. member is its ID, if it has served from this pod.
func progress(dir, dataDir, member string) (restored bool, err error) {
	if err := datadir.CheckStarted(dataDir, member); err != nil {
		return false, err
	}
	hasData, err := datadir.HoldsData(dataDir)
	if err != nil {
		return false, fmt.Errorf("look for the member's data in %s: %w", dataDir, err)
	}
	if hasData {
		return true, nil
	}
	switch _, err := os.Stat(filepath.Join(dir, doneFile)); {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look whether the backup was restored in this pod before: %w", err)
	}
	return false, fmt.Errorf("the backup was restored in this pod before, and %s holds no data of etcd now, as after the restart of a node that keeps it in memory: "+
		"this member must not start again on the old data, for it could lose writes; delete the pod, so that the member is made anew", dataDir)
}

// syncDir makes what was made or renamed in a directory last.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// remove removes a file that may be gone already.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
