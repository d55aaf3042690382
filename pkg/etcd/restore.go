// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "fmt"

// SnapshotTool is the program in the image of this version that makes a data
// directory out of a snapshot. etcdutl came with 3.5, and etcdctl has lost the
// command in 3.6 (https://etcd.io/docs/v3.6/op-guide/recovery/).
func (v Version) SnapshotTool() string {
	if v.atLeast(5) {
		return "etcdutl"
	}
	return "etcdctl"
}

// HasBumpRevision tells whether the tool of this version can raise the revision of
// what it restores (--bump-revision, --mark-compacted). That came with 3.6 and was
// carried to 3.5.10 and 3.4.27
// (https://etcd.io/docs/v3.5/op-guide/recovery/#restoring-with-revision-bump).
func (v Version) HasBumpRevision() bool {
	switch v.Minor {
	case 4:
		return v.Patch >= 27
	case 5:
		return v.Patch >= 10
	default:
		return v.Minor >= 6
	}
}

// RestoreFits tells whether a cluster of the version target can begin with a backup
// that was taken of the version backup, and if not, why and what to do.
//
// A restored cluster begins with the keys alone: its raft log is empty, so nothing
// of what keeps a running cluster from skipping minors (CheckChange, CheckOrigin)
// holds here. Tests restore the backups of each minor from 3.4 on into all later
// ones (internal/seed). In the other direction, 3.6 refuses the data of 3.7 ("version
// is not supported"); 3.5 and 3.4 don't look, and start on data of which nobody says
// that they know all that is in it.
func RestoreFits(backup, target Version) error {
	switch {
	case backup.Minor > target.Minor:
		return fmt.Errorf("a backup of etcd %s can't be restored into a cluster of the older %s: set the cluster's version to %d.%d or later", backup, target, backup.Major, backup.Minor)
	case backup.Minor < oldestRestoredFurther && target.Minor > backup.Minor+1:
		return fmt.Errorf("a backup of etcd %s can't be restored into a cluster of %s: set the cluster's version to %d.%d, and upgrade it minor by minor",
			backup, target, backup.Major, backup.Minor)
	}
	return nil
}

// oldestRestoredFurther is the oldest minor whose backups were seen to work in minors
// beyond the next.
const oldestRestoredFurther = 4
