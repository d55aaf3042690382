// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "fmt"

// SnapshotTool is the program in this version's image that restores a snapshot into a data
// directory. etcdutl exists since 3.5, and etcdctl lost the command in 3.6
// (https://etcd.io/docs/v3.6/op-guide/recovery/).
func (v Version) SnapshotTool() string {
	if v.atLeast(5) {
		return "etcdutl"
	}
	return "etcdctl"
}

// HasBumpRevision reports whether this version's tool can raise the revision of a restored
// snapshot (--bump-revision, --mark-compacted). The flags exist since 3.6, 3.5.10 and 3.4.27
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

// RestoreFits returns nil if a cluster of the version target can start from a backup of the
// version backup. Otherwise the error says why not, and what to do.
//
// A restored cluster has keys and an empty raft log, so the limits on skipped minors
// (CheckChange, CheckOrigin) do not apply. Tests restore backups of each minor since 3.4 into
// all later ones (internal/seed). In the other direction, 3.6 refuses data of 3.7 ("version is
// not supported"). 3.5 and 3.4 do not check, and start on data that they may not understand.
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

// oldestRestoredFurther is the oldest minor whose backups are tested to work in minors beyond
// the next.
const oldestRestoredFurther = 4
