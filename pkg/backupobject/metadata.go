// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupobject

// Keys of an object's metadata. A store, or a copy by other tools, may have lost them. Backups
// of v0.9.4 have none.
const (
	// MetaRevision is the lowest revision of etcd's data that the backup can hold.
	MetaRevision = "etcd-revision"
	// MetaVersion is the version of the backed-up etcd, such as 3.6.16.
	MetaVersion = "etcd-version"
	// MetaCluster is the ID of the etcd cluster, in 16 hexadecimal digits.
	MetaCluster = "etcd-cluster-id"
	// MetaApplied is how many raft entries the backup contains at the least.
	MetaApplied = "etcd-raft-applied"
	// MetaUnapplied is how many raft entries after these it contains at the most. Only a backup that no
	// quorum has confirmed has it.
	MetaUnapplied = "etcd-raft-unapplied"
	// MetaEndpoint is the URL of the member that sent the snapshot.
	MetaEndpoint = "etcd-endpoint"
	// MetaLinearizable is "false" if etcd had no quorum, else "true".
	MetaLinearizable = "etcd-linearizable"
	// MetaUID is the UID of the EtcdBackup, MetaName its namespace and name.
	MetaUID  = "backup-uid"
	MetaName = "backup-name"
	// MetaGeneration is the generation of its spec, MetaSpec the spec's digest.
	MetaGeneration = "backup-generation"
	MetaSpec       = "backup-spec"
	// MetaScheduled is the time on the schedule, and MetaStarted the beginning of the attempt,
	// both by RFC 3339.
	MetaScheduled = "backup-scheduled"
	MetaStarted   = "backup-started"
	// MetaBase is "true" if the log of changes needed the backup, outside the schedule. Other backups
	// lack it, and those of earlier releases.
	MetaBase = "backup-base"
	// MetaSHA256 is the SHA-256 of the whole object, in hexadecimal. Some stores accept no
	// metadata after the content of large objects; these lack it, and MetaDuration.
	MetaSHA256   = "sha256"
	MetaDuration = "duration"
	// MetaSize is the size of the object in bytes.
	MetaSize = "size"
)

// Base reports whether the backup was made outside the schedule, because the log of changes had begun again.
func Base(metadata map[string]string) bool { return metadata[MetaBase] == "true" }

// Uncertain reports whether the backup may lack writes by its metadata, because etcd had no
// quorum.
func Uncertain(metadata map[string]string) bool { return metadata[MetaLinearizable] == "false" }
