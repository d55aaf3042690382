// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupobject

// Keys of the metadata that an object carries. A store, or a copy by other tools,
// may have lost them; backups of v0.9.4 have none.
const (
	// MetaRevision is the revision of etcd's data in it, at the least.
	MetaRevision = "etcd-revision"
	// MetaVersion is the version of the etcd that it was taken from, such as 3.6.16.
	MetaVersion = "etcd-version"
	// MetaEndpoint is the URL of the member that it was taken from.
	MetaEndpoint = "etcd-endpoint"
	// MetaLinearizable is "false" where etcd had no quorum, else "true".
	MetaLinearizable = "etcd-linearizable"
	// MetaUID is the UID of the EtcdBackup, MetaName its namespace and name.
	MetaUID  = "backup-uid"
	MetaName = "backup-name"
	// MetaGeneration is the generation of its spec, MetaSpec the digest of that.
	MetaGeneration = "backup-generation"
	MetaSpec       = "backup-spec"
	// MetaScheduled is the window, on a schedule, and MetaStarted when the attempt
	// began, both by RFC 3339.
	MetaScheduled = "backup-scheduled"
	MetaStarted   = "backup-started"
	// MetaSHA256 is that of the whole object, in hexadecimal. Some stores take no
	// metadata after the content of large objects; these lack it, and MetaDuration.
	MetaSHA256   = "sha256"
	MetaDuration = "duration"
	// MetaSize is the size of the object in bytes.
	MetaSize = "size"
)

// Uncertain tells of an object's metadata whether writes may be missing in it, since
// etcd had no quorum when it was taken.
func Uncertain(metadata map[string]string) bool { return metadata[MetaLinearizable] == "false" }
