// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// As those of EtcdClusters, the rules below are those of the CRD's schema, and
// repeat the markers in backup.go.

const (
	maxBackupEndpoints = 64
	maxBackupURLLength = 1024
	maxBackupPath      = 1024
	maxSecretLength    = 253
	maxScheduleLength  = 256
	maxTimeZoneLength  = 64
)

var (
	backupStorageTypes = []BackupStorageType{BackupStorageTypeS3, BackupStorageTypeABS, BackupStorageTypeGCS, BackupStorageTypeOSS, BackupStorageTypeVolume}
	bucketAndKey       = regexp.MustCompile(`^[^/]+/.`)
)

// ValidateEtcdBackup returns what is wrong with the spec of a backup, in the words
// of the CRD's schema.
func ValidateEtcdBackup(b *EtcdBackup) field.ErrorList {
	s, path := &b.Spec, field.NewPath("spec")
	errs := validateBackedUp(s, path)
	if !slices.Contains(backupStorageTypes, s.StorageType) {
		errs = append(errs, field.NotSupported(path.Child("storageType"), s.StorageType, backupStorageTypes))
	}
	for _, section := range []struct {
		storageType BackupStorageType
		name        string
		missing     bool
	}{
		{BackupStorageTypeS3, "s3", s.S3 == nil},
		{BackupStorageTypeABS, "abs", s.ABS == nil},
		{BackupStorageTypeGCS, "gcs", s.GCS == nil},
		{BackupStorageTypeOSS, "oss", s.OSS == nil},
		{BackupStorageTypeVolume, "volume", s.Volume == nil},
	} {
		if s.StorageType == section.storageType && section.missing {
			errs = append(errs, field.Invalid(path.Child(section.name), "", "storageType "+string(section.storageType)+" needs the section "+section.name))
		}
	}
	if s.BackupPolicy != nil {
		errs = append(errs, validateBackupPolicy(s.BackupPolicy, path.Child("backupPolicy"))...)
	}
	return append(errs, validateBackupSource(&s.BackupSource, path)...)
}

// validateBackedUp is about what is backed up, and how to connect to it.
func validateBackedUp(s *BackupSpec, path *field.Path) (errs field.ErrorList) {
	if (s.EtcdCluster != nil) == (len(s.EtcdEndpoints) > 0) {
		errs = append(errs, field.Invalid(path, "", "either etcdEndpoints or etcdCluster must say what to back up"))
	}
	if len(s.EtcdEndpoints) > maxBackupEndpoints {
		errs = append(errs, field.TooMany(path.Child("etcdEndpoints"), len(s.EtcdEndpoints), maxBackupEndpoints))
	}
	for i, endpoint := range s.EtcdEndpoints {
		errs = append(errs, validateLength(endpoint, maxBackupURLLength, path.Child("etcdEndpoints").Index(i))...)
	}
	if s.EtcdCluster != nil {
		errs = append(errs, validateNonEmpty(s.EtcdCluster.Name, maxObjectNameLength, path.Child("etcdCluster", "name"))...)
	}
	return append(errs, validateLength(s.ClientTLSSecret, maxSecretLength, path.Child("clientTLSSecret"))...)
}

func validateBackupPolicy(p *BackupPolicy, path *field.Path) (errs field.ErrorList) {
	for _, number := range []struct {
		name  string
		value int64
	}{
		{"timeoutInSecond", p.TimeoutInSecond},
		{"backupIntervalInSecond", p.BackupIntervalInSecond},
		{"maxBackups", int64(p.MaxBackups)},
		{"maxAgeInSecond", p.MaxAgeInSecond},
	} {
		if number.value < 0 {
			errs = append(errs, field.Invalid(path.Child(number.name), number.value, "should be greater than or equal to 0"))
		}
	}
	if p.Schedule != "" && p.BackupIntervalInSecond != 0 {
		errs = append(errs, field.Invalid(path.Child("schedule"), p.Schedule, "schedule and backupIntervalInSecond exclude each other"))
	}
	if p.TimeZone != "" && p.Schedule == "" {
		errs = append(errs, field.Invalid(path.Child("timeZone"), p.TimeZone, "timeZone is that of schedule, which is not set"))
	}
	errs = append(errs, validateLength(p.Schedule, maxScheduleLength, path.Child("schedule"))...)
	if strings.Contains(p.Schedule, "TZ") {
		errs = append(errs, field.Invalid(path.Child("schedule"), p.Schedule, "schedule must not name a time zone: timeZone does"))
	}
	return append(errs, validateLength(p.TimeZone, maxTimeZoneLength, path.Child("timeZone"))...)
}

// validateBackupSource looks at all sections, also those that don't count, as the
// schema does.
func validateBackupSource(s *BackupSource, path *field.Path) (errs field.ErrorList) {
	if s3, at := s.S3, path.Child("s3"); s3 != nil {
		errs = append(errs, validateBucketAndKey(s3.Path, "a bucket", "mybucket", at)...)
		errs = append(errs, validateLength(s3.AWSSecret, maxSecretLength, at.Child("awsSecret"))...)
		errs = append(errs, validateLength(s3.Endpoint, maxBackupURLLength, at.Child("endpoint"))...)
	}
	if abs, at := s.ABS, path.Child("abs"); abs != nil {
		errs = append(errs, validateBucketAndKey(abs.Path, "a container", "mycontainer", at)...)
		errs = append(errs, validateNonEmpty(abs.ABSSecret, maxSecretLength, at.Child("absSecret"))...)
		errs = append(errs, validateLength(abs.Endpoint, maxBackupURLLength, at.Child("endpoint"))...)
	}
	if gcs, at := s.GCS, path.Child("gcs"); gcs != nil {
		errs = append(errs, validateBucketAndKey(gcs.Path, "a bucket", "mybucket", at)...)
		errs = append(errs, validateLength(gcs.GCPSecret, maxSecretLength, at.Child("gcpSecret"))...)
		errs = append(errs, validateLength(gcs.Endpoint, maxBackupURLLength, at.Child("endpoint"))...)
	}
	if oss, at := s.OSS, path.Child("oss"); oss != nil {
		errs = append(errs, validateBucketAndKey(oss.Path, "a bucket", "mybucket", at)...)
		errs = append(errs, validateNonEmpty(oss.OSSSecret, maxSecretLength, at.Child("ossSecret"))...)
		errs = append(errs, validateLength(oss.Endpoint, maxBackupURLLength, at.Child("endpoint"))...)
	}
	if volume, at := s.Volume, path.Child("volume", "path"); volume != nil {
		errs = append(errs, validateLength(volume.Path, maxBackupPath, at)...)
		if slices.ContainsFunc(strings.Split(volume.Path, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }) {
			errs = append(errs, field.Invalid(at, volume.Path, "path must be a relative path without empty parts, . and .."))
		}
	}
	return errs
}

func validateBucketAndKey(value, bucket, example string, section *field.Path) field.ErrorList {
	at := section.Child("path")
	errs := validateLength(value, maxBackupPath, at)
	if !bucketAndKey.MatchString(value) {
		errs = append(errs, field.Invalid(at, value, "path must be "+bucket+" and a key, such as "+example+"/etcd.backup"))
	}
	return errs
}

func validateNonEmpty(value string, limit int, path *field.Path) field.ErrorList {
	errs := validateLength(value, limit, path)
	if value == "" {
		errs = append(errs, field.Invalid(path, value, "should be at least 1 chars long"))
	}
	return errs
}
