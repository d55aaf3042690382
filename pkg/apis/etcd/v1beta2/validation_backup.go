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
	maxRestoreTest     = 86400
	maxCheck           = 1024
	maxLag             = 60
)

var (
	backupStorageTypes = []BackupStorageType{BackupStorageTypeS3, BackupStorageTypeABS, BackupStorageTypeGCS, BackupStorageTypeOSS, BackupStorageTypeVolume}
	bucketAndKey       = regexp.MustCompile(`^[^/:]+/.`) // no URL such as s3://mybucket/key
)

// ValidateEtcdBackup returns what is wrong with the spec of a backup, in the words
// of the CRD's schema.
func ValidateEtcdBackup(b *EtcdBackup) field.ErrorList {
	s, path := &b.Spec, field.NewPath("spec")
	errs := validateBackedUp(s, path)
	errs = append(errs, validateStorage("storageType", s.StorageType, &s.BackupSource, path)...)
	if s.BackupPolicy != nil {
		errs = append(errs, validateBackupPolicy(s.BackupPolicy, path.Child("backupPolicy"))...)
	}
	if s.RestoreTest != nil {
		errs = append(errs, validateRestoreTest(s.RestoreTest, path.Child("restoreTest"))...)
	}
	if s.Continuous != nil {
		errs = append(errs, validateContinuous(s, path.Child("continuous"))...)
	}
	return errs
}

func validateContinuous(s *BackupSpec, path *field.Path) (errs field.ErrorList) {
	lag := path.Child("maxLagInSecond")
	if !s.Periodic() {
		errs = append(errs, field.Invalid(path, "", "continuous needs a schedule: the log follows its backups"))
	}
	if s.Continuous.MaxLagInSecond < 0 {
		errs = append(errs, field.Invalid(lag, s.Continuous.MaxLagInSecond, "should be greater than or equal to 0"))
	}
	if s.Continuous.MaxLagInSecond > maxLag {
		errs = append(errs, field.Invalid(lag, s.Continuous.MaxLagInSecond, "should be less than or equal to 60"))
	}
	return errs
}

func validateRestoreTest(t *RestoreTest, path *field.Path) (errs field.ErrorList) {
	if t.IntervalInSecond < 0 {
		errs = append(errs, field.Invalid(path.Child("intervalInSecond"), t.IntervalInSecond, "should be greater than or equal to 0"))
	}
	if t.TimeoutInSecond < 0 {
		errs = append(errs, field.Invalid(path.Child("timeoutInSecond"), t.TimeoutInSecond, "should be greater than or equal to 0"))
	}
	if t.TimeoutInSecond > maxRestoreTest {
		errs = append(errs, field.Invalid(path.Child("timeoutInSecond"), t.TimeoutInSecond, "should be less than or equal to 86400"))
	}
	if c := t.Check; c != nil {
		errs = append(errs, validateNonEmpty(c.Key, maxCheck, path.Child("check", "key"))...)
		if c.Value != nil {
			errs = append(errs, validateLength(*c.Value, maxCheck, path.Child("check", "value"))...)
		}
	}
	if t.ClusterTemplate != nil {
		errs = append(errs, validateTemplate(t.ClusterTemplate, path.Child("clusterTemplate", "spec"))...)
	}
	return errs
}

// validateStorage is about the place in a store. name is that of the field which
// holds the storage type.
func validateStorage(name string, storageType BackupStorageType, s *BackupSource, path *field.Path) (errs field.ErrorList) {
	if !slices.Contains(backupStorageTypes, storageType) {
		errs = append(errs, field.NotSupported(path.Child(name), storageType, backupStorageTypes))
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
		if storageType == section.storageType && section.missing {
			errs = append(errs, field.Invalid(path.Child(section.name), "", name+" "+string(storageType)+" needs the section "+section.name))
		}
	}
	errs = append(errs, validateSection(name, storageType, s, path)...)
	return append(errs, validateLengths(s, path)...)
}

// validateBackedUp checks the source of a backup and the connection to it.
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
	errs = append(errs, validateLength(s.CredentialsSecret, maxSecretLength, path.Child("credentialsSecret"))...)
	return append(errs, validateLength(s.ClientTLSSecret, maxSecretLength, path.Child("clientTLSSecret"))...)
}

func validateBackupPolicy(p *BackupPolicy, path *field.Path) (errs field.ErrorList) {
	for _, number := range []struct {
		name  string
		value int64
	}{
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

// validateSection looks at the section of the storage type: others don't count.
func validateSection(name string, storageType BackupStorageType, s *BackupSource, path *field.Path) field.ErrorList {
	switch {
	case storageType == BackupStorageTypeS3 && s.S3 != nil:
		return validateBucketAndKey(s.S3.Path, "a bucket", "mybucket", path.Child("s3"))
	case storageType == BackupStorageTypeABS && s.ABS != nil:
		return append(validateBucketAndKey(s.ABS.Path, "a container", "mycontainer", path.Child("abs")),
			validateNamed(s.ABS.ABSSecret, name+" "+string(storageType), path.Child("abs", "absSecret"))...)
	case storageType == BackupStorageTypeGCS && s.GCS != nil:
		return validateBucketAndKey(s.GCS.Path, "a bucket", "mybucket", path.Child("gcs"))
	case storageType == BackupStorageTypeOSS && s.OSS != nil:
		return append(validateBucketAndKey(s.OSS.Path, "a bucket", "mybucket", path.Child("oss")),
			validateNamed(s.OSS.OSSSecret, name+" "+string(storageType), path.Child("oss", "ossSecret"))...)
	case storageType == BackupStorageTypeVolume && s.Volume != nil:
		if slices.ContainsFunc(strings.Split(s.Volume.Path, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }) {
			return field.ErrorList{field.Invalid(path.Child("volume", "path"), s.Volume.Path, "path must be a relative path without empty parts, . and ..")}
		}
	}
	return nil
}

func validateBucketAndKey(value, bucket, example string, section *field.Path) field.ErrorList {
	if bucketAndKey.MatchString(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(section.Child("path"), value, "path must be "+bucket+" and a key, such as "+example+"/etcd.backup")}
}

func validateNamed(secret, needs string, path *field.Path) field.ErrorList {
	if secret != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, secret, needs+" needs the name of a Secret")}
}

// validateLengths looks at all sections, as the schema does.
func validateLengths(s *BackupSource, path *field.Path) (errs field.ErrorList) {
	check := func(section, location, secretField, secret, endpoint string) {
		at := path.Child(section)
		errs = append(errs, validateLength(location, maxBackupPath, at.Child("path"))...)
		errs = append(errs, validateLength(secret, maxSecretLength, at.Child(secretField))...)
		errs = append(errs, validateLength(endpoint, maxBackupURLLength, at.Child("endpoint"))...)
	}
	if s.S3 != nil {
		check("s3", s.S3.Path, "awsSecret", s.S3.AWSSecret, s.S3.Endpoint)
	}
	if s.ABS != nil {
		check("abs", s.ABS.Path, "absSecret", s.ABS.ABSSecret, s.ABS.Endpoint)
	}
	if s.GCS != nil {
		check("gcs", s.GCS.Path, "gcpSecret", s.GCS.GCPSecret, s.GCS.Endpoint)
	}
	if s.OSS != nil {
		check("oss", s.OSS.Path, "ossSecret", s.OSS.OSSSecret, s.OSS.Endpoint)
	}
	if s.Volume != nil {
		check("volume", s.Volume.Path, "", "", "")
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
