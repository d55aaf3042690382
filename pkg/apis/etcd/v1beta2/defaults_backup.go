// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"math"
	"time"
)

// DefaultBackupTimeout bounds an attempt where backupPolicy.timeoutInSecond is
// unset. The field's comment names it too.
const DefaultBackupTimeout = 60 * time.Second

// LongestBackupTimeout is what longer ones count as. The field's comment names it
// too.
const LongestBackupTimeout = 24 * time.Hour

func (s *BackupSpec) policy() BackupPolicy {
	if s.BackupPolicy == nil {
		return BackupPolicy{}
	}
	return *s.BackupPolicy
}

// Timeout bounds an attempt to make a backup. It is not longer than
// LongestBackupTimeout.
func (s *BackupSpec) Timeout() time.Duration {
	if t := s.policy().TimeoutInSecond; t > 0 {
		return min(seconds(t), LongestBackupTimeout)
	}
	return DefaultBackupTimeout
}

// Interval is from one backup to the next; 0 where there is none.
func (s *BackupSpec) Interval() time.Duration { return seconds(s.policy().BackupIntervalInSecond) }

// Schedule is the cron expression and its time zone; both "" where there is none.
func (s *BackupSpec) Schedule() (expression, timeZone string) {
	return s.policy().Schedule, s.policy().TimeZone
}

// Periodic reports whether the spec asks for repeated backups.
func (s *BackupSpec) Periodic() bool {
	return s.policy().BackupIntervalInSecond > 0 || s.policy().Schedule != ""
}

// Suspended reports whether the operator must not start a backup.
func (s *BackupSpec) Suspended() bool { return s.policy().Suspend }

// Kept is the number of backups to keep, and their maximal age; 0: no limit.
func (s *BackupSpec) Kept() (count int, age time.Duration) {
	return s.policy().MaxBackups, seconds(s.policy().MaxAgeInSecond)
}

// Path is that of the storageType's section, "" without one.
func (s *BackupSpec) Path() string { return s.BackupSource.Path(s.StorageType) }

// Path is that of a storage type's section, "" without one.
func (s *BackupSource) Path(storageType BackupStorageType) string {
	switch {
	case storageType == BackupStorageTypeS3 && s.S3 != nil:
		return s.S3.Path
	case storageType == BackupStorageTypeABS && s.ABS != nil:
		return s.ABS.Path
	case storageType == BackupStorageTypeGCS && s.GCS != nil:
		return s.GCS.Path
	case storageType == BackupStorageTypeOSS && s.OSS != nil:
		return s.OSS.Path
	case storageType == BackupStorageTypeVolume && s.Volume != nil:
		return s.Volume.Path
	}
	return ""
}

// seconds converts a number of seconds. The schema has no upper limits, and an
// overflow would be negative. Centuries are close enough to such a request.
func seconds(n int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(n, 0), longest)) * time.Second
}
