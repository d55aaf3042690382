// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seed is the init containers of a cluster's first member that starts on a backup, or on
// the data of a running etcd. One fetches the backup (Fetch), or copies the data (Copy). The other
// makes a data directory from it with etcd's own tool (Restore). The second runs in etcd's image,
// which has no shell and no program of the operator, so the first copies its program for it.
//
// Both may be killed at any moment, and run again, even long after the restore when the pod's
// node has restarted. They decide by the files on the disk what is left to do. Only complete
// files have their final names.
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
	rewoundFile  = "rewound.db"       // what it was at an earlier revision
	replayDir    = "replay"           // where etcd applies the raft entries at the end of the backup
	partFile     = "snapshot.db.part" // the part that has arrived
	programFile  = "etcd-operator"    // for the container in etcd's image
	doneFile     = "done"             // the data directory is complete
)

// progress reports whether the data directory was restored in this pod, or for this member in
// an earlier one. It is an error if it was and is gone now: the member may have served since.
// With the backup's data under its old ID, it could vote a second time on entries that it has
// forgotten. member is the ID of the member that has served from this pod, if one has.
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
		"this member must not start again on the old data, which could lose writes; delete the pod, so that the operator recreates the member", dataDir)
}

// remove deletes a file, and accepts that it does not exist.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
