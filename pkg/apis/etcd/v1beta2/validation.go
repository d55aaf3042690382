// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules below are those of the CRD's schema, for clusters whose CRD is older
// than this operator or was made by somebody else (-create-crd=false). They
// repeat the markers in cluster.go; the cases in ../crd/testdata are put to both.
// Rules inside of the types of Kubernetes (hack/crdrules) are in the schema alone:
// where that is not in force, the API server refuses the pod in the same words.

const (
	minSize             = 1
	maxSize             = 7
	maxNameLength       = 52
	maxRepositoryLength = 512
	maxVersionLength    = 136
	maxImageLength      = 1024
	maxObjectNameLength = 253
)

var (
	repositoryFormat = regexp.MustCompile(`^(([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?` +
		`[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	// Semantic versioning without build metadata: a + cannot be in an image tag.
	versionFormat = regexp.MustCompile(`^v?(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})` +
		`(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(@sha256:[0-9a-f]{64})?$`)
	supportedVersion = regexp.MustCompile(`^v?3[.][1-9]`)
	numberedVersion  = regexp.MustCompile(`^v?[0-9]+[.]`)
	objectName       = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// ValidateEtcdCluster returns what is wrong with a cluster's name and spec, in
// the words of the CRD's schema.
func ValidateEtcdCluster(c *EtcdCluster) field.ErrorList {
	errs := validateName(c.Name, field.NewPath("metadata", "name"))
	errs = append(errs, validateSpec(&c.Spec, field.NewPath("spec"))...)
	if s := c.Spec.Service; s != nil && s.Name != "" && s.Name == c.Name {
		errs = append(errs, field.Invalid(field.NewPath("spec", "service", "name"), s.Name,
			"must not be the name of the cluster: the Service of the members' names has it"))
	}
	return errs
}

func validateName(name string, path *field.Path) (errs field.ErrorList) {
	if len(name) > maxNameLength {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("must be at most %d characters: "+
			"pod names append 11 more, and the limit of a host name is 63", maxNameLength)))
	}
	if strings.Contains(name, ".") {
		errs = append(errs, field.Invalid(path, name, "must not contain a dot: it names Services, which are single DNS labels"))
	}
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		errs = append(errs, field.Invalid(path, name, "must start with a lowercase letter: it names Services, which must"))
	}
	return errs
}

func validateSpec(s *ClusterSpec, path *field.Path) (errs field.ErrorList) {
	if s.Size < minSize || s.Size > maxSize {
		errs = append(errs, field.Invalid(path.Child("size"), s.Size, fmt.Sprintf("must be from %d to %d", minSize, maxSize)))
	}
	errs = append(errs, validateLength(s.Repository, maxRepositoryLength, path.Child("repository"))...)
	if s.Repository != "" && !repositoryFormat.MatchString(s.Repository) {
		errs = append(errs, field.Invalid(path.Child("repository"), s.Repository,
			"must be an image repository without tag or digest, such as quay.io/coreos/etcd: the operator appends :v<version>"))
	}
	errs = append(errs, validateLength(s.Version, maxVersionLength, path.Child("version"))...)
	if s.Version != "" && !versionFormat.MatchString(s.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), s.Version,
			"must be a full semantic version such as 3.6.16 or v3.6.16: a tag like latest or a shortened 3.6 does not say which etcd to run"))
	}
	if numberedVersion.MatchString(s.Version) && !supportedVersion.MatchString(s.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), s.Version, "must be a 3.x release of etcd, 3.1 or later"))
	}
	if s.Pod != nil {
		errs = append(errs, validatePod(s.Pod, path.Child("pod"))...)
	}
	if s.TLS != nil && s.TLS.Static != nil {
		errs = append(errs, validateTLS(s.TLS.Static, path.Child("TLS", "static"))...)
	}
	if s.Auth != nil {
		errs = append(errs, validateUserSecret(s.Auth, path.Child("auth"))...)
	}
	if s.ImportFrom != nil {
		errs = append(errs, validateImport(s.ImportFrom, path.Child("importFrom"))...)
	}
	if s.Service != nil {
		errs = append(errs, validateService(s.Service, path.Child("service"))...)
	}
	if s.Recovery != nil {
		errs = append(errs, validateRecovery(s.Recovery, path.Child("recovery"))...)
	}
	return append(errs, validateObjectName(s.PriorityClassName, "PriorityClass", path.Child("priorityClassName"))...)
}

// validateObjectName is for names of objects that the spec refers to; "" is none.
func validateObjectName(name, kind string, path *field.Path) field.ErrorList {
	errs := validateLength(name, maxObjectNameLength, path)
	if name != "" && !objectName.MatchString(name) {
		errs = append(errs, field.Invalid(path, name, "must be the name of a "+kind+
			": lowercase letters, digits, dashes and dots, with a letter or digit first and last"))
	}
	return errs
}

// validateLength counts characters, as the schema does.
func validateLength(value string, limit int, path *field.Path) field.ErrorList {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, limit)}
}
