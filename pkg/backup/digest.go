// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// digestOf distinguishes specs by what makes a backup another one: what is backed up,
// where to, and on which schedule. It is in status and stores: another digest
// of the same spec would have all backups that are made once recreated.
func digestOf(spec *api.BackupSpec) string {
	s := spec.DeepCopy()
	s.RestoreTest, s.Continuous = nil, nil
	if p := s.BackupPolicy; p != nil {
		p.Suspend, p.TimeoutInSecond, p.MaxBackups, p.MaxAgeInSecond = false, 0, 0, 0
		if *p == (api.BackupPolicy{}) {
			s.BackupPolicy = nil
		}
	}
	// Other sections than that of the storageType don't count.
	all := s.BackupSource
	s.BackupSource = api.BackupSource{}
	switch s.StorageType {
	case api.BackupStorageTypeS3:
		s.S3 = all.S3
	case api.BackupStorageTypeABS:
		s.ABS = all.ABS
	case api.BackupStorageTypeGCS:
		s.GCS = all.GCS
	case api.BackupStorageTypeOSS:
		s.OSS = all.OSS
	case api.BackupStorageTypeVolume:
		s.Volume = all.Volume
	}
	text, err := json.Marshal(s)
	if err != nil { // of strings, numbers and truths, it can't be
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
