// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// As those of EtcdClusters, the rules below are those of the CRD's schema, and
// repeat the markers in restore.go.

var (
	restorePicks  = []RestorePick{RestorePickExact, RestorePickNewest}
	oldVolumes    = []OldVolumes{OldVolumesDeleteWhenRestored, OldVolumesKeep, OldVolumesDeleteFirst}
	clusterFormat = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	clusterIDForm = regexp.MustCompile(`^[0-9a-f]*$`)
)

// maxClusterIDLength is that of 64 bits in hexadecimal digits.
const maxClusterIDLength = 16

// ValidateEtcdRestore returns what is wrong with the name and the spec of a restore,
// in the words of the CRD's schema.
func ValidateEtcdRestore(r *EtcdRestore) (errs field.ErrorList) {
	s, path := &r.Spec, field.NewPath("spec")
	if len(r.Name) > maxNameLength || !clusterFormat.MatchString(r.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), r.Name, "metadata.name must be the name of an EtcdCluster: at most 52 lowercase letters, digits and dashes, with a letter first"))
	}
	errs = append(errs, validateNonEmpty(s.EtcdCluster.Name, maxObjectNameLength, path.Child("etcdCluster", "name"))...)
	if s.EtcdCluster.Name != r.Name {
		errs = append(errs, field.Invalid(path.Child("etcdCluster", "name"), s.EtcdCluster.Name, "etcdCluster.name must be the name of the EtcdRestore: the restored cluster has it"))
	}
	errs = append(errs, validateStorage("backupStorageType", s.BackupStorageType, &s.BackupSource, path)...)
	if s.Pick != "" && !slices.Contains(restorePicks, s.Pick) {
		errs = append(errs, field.NotSupported(path.Child("pick"), s.Pick, restorePicks))
	}
	if s.Before != nil && !s.Newest() {
		errs = append(errs, field.Invalid(path.Child("before"), s.Before, "before chooses among several backups: it needs pick: Newest"))
	}
	if s.Time != nil && !s.Newest() {
		errs = append(errs, field.Invalid(path.Child("time"), s.Time, "time chooses among backups and their log: it needs pick: Newest"))
	}
	if s.Time != nil && (s.Before != nil || s.Revision != 0) {
		errs = append(errs, field.Invalid(path.Child("time"), s.Time, "time excludes before and revision"))
	}
	errs = append(errs, validateLength(s.ClusterID, maxClusterIDLength, path.Child("clusterID"))...)
	if !clusterIDForm.MatchString(s.ClusterID) {
		errs = append(errs, field.Invalid(path.Child("clusterID"), s.ClusterID, "clusterID must have up to 16 hexadecimal digits, such as cdf818194e3a8c32"))
	}
	if s.ClusterID != "" && !s.Newest() {
		errs = append(errs, field.Invalid(path.Child("clusterID"), s.ClusterID, "clusterID chooses among several backups: it needs pick: Newest"))
	}
	if s.Revision < 0 {
		errs = append(errs, field.Invalid(path.Child("revision"), s.Revision, "should be greater than or equal to 0"))
	}
	if s.BumpRevision < 0 {
		errs = append(errs, field.Invalid(path.Child("bumpRevision"), s.BumpRevision, "should be greater than or equal to 0"))
	}
	if s.BumpRevision > MaxBumpRevision {
		errs = append(errs, field.Invalid(path.Child("bumpRevision"), s.BumpRevision, "should be less than or equal to 1125899906842624"))
	}
	if s.OldVolumes != "" && !slices.Contains(oldVolumes, s.OldVolumes) {
		errs = append(errs, field.NotSupported(path.Child("oldVolumes"), s.OldVolumes, oldVolumes))
	}
	if s.ClusterTemplate != nil {
		errs = append(errs, validateTemplate(s.ClusterTemplate, path.Child("clusterTemplate", "spec"))...)
	}
	return errs
}

// validateTemplate checks the template, which the schema cannot do. A second copy of an
// EtcdCluster's rules would exceed the API server's cost limit.
func validateTemplate(t *ClusterTemplate, path *field.Path) field.ErrorList {
	spec, err := t.ClusterSpec()
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return validateSpec(&spec, path)
}
