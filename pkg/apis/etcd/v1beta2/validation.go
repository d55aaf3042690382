// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules below are those of the CRD's schema, for clusters whose CRD is older
// than this operator or was made by somebody else (-create-crd=false). They
// repeat the markers in cluster.go; the cases in ../crd/testdata are put to both.

const (
	minSize              = 1
	maxSize              = 7
	maxNameLength        = 52
	maxRepositoryLength  = 512
	maxVersionLength     = 64
	maxImageLength       = 1024
	maxLabels            = 64
	maxLabelValueLength  = 63
	reservedLabel        = "app"
	reservedLabelsPrefix = "etcd_"
)

var (
	repositoryFormat = regexp.MustCompile(`^(([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?` +
		`[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	// Semantic versioning without build metadata: a + cannot be in an image tag.
	versionFormat = regexp.MustCompile(`^v?(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})` +
		`(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$`)
	labelKeyFormat = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?` +
		`[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	labelValueFormat = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`)
)

// ValidateEtcdCluster returns what is wrong with a cluster's name and spec, in
// the words of the CRD's schema.
func ValidateEtcdCluster(c *EtcdCluster) field.ErrorList {
	errs := validateName(c.Name, field.NewPath("metadata", "name"))
	return append(errs, validateSpec(&c.Spec, field.NewPath("spec"))...)
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
	if s.Pod != nil {
		errs = append(errs, validatePod(s.Pod, path.Child("pod"))...)
	}
	return errs
}

func validatePod(p *PodPolicy, path *field.Path) (errs field.ErrorList) {
	if len(p.Labels) > maxLabels {
		errs = append(errs, field.TooMany(path.Child("labels"), len(p.Labels), maxLabels))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		errs = append(errs, validateLabel(key, p.Labels[key], path.Child("labels"))...)
	}
	errs = append(errs, validateLength(p.BusyboxImage, maxImageLength, path.Child("busyboxImage"))...)
	if strings.ContainsAny(p.BusyboxImage, " \t\r\n") {
		errs = append(errs, field.Invalid(path.Child("busyboxImage"), p.BusyboxImage,
			"must be an image reference such as busybox:1.28, without spaces"))
	}
	if t := p.DNSTimeoutInSecond; t != nil && *t < 0 {
		errs = append(errs, field.Invalid(path.Child("DNSTimeoutInSecond"), *t, "must be 0 (no bound) or more"))
	}
	return errs
}

func validateLabel(key, value string, path *field.Path) (errs field.ErrorList) {
	if key == reservedLabel || strings.HasPrefix(key, reservedLabelsPrefix) {
		errs = append(errs, field.Invalid(path, key,
			"must not contain the key app or keys that begin with etcd_: the operator finds its pods by them"))
	}
	if !labelKeyFormat.MatchString(key) {
		errs = append(errs, field.Invalid(path, key, "must have keys as Kubernetes knows them: "+
			"at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"))
	}
	errs = append(errs, validateLength(value, maxLabelValueLength, path.Child(key))...)
	if !labelValueFormat.MatchString(value) {
		errs = append(errs, field.Invalid(path.Child(key), value, "must have values as Kubernetes knows them: "+
			"letters, digits, dashes, dots and underscores, with a letter or digit first and last"))
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

// Warnings returns what is allowed in a cluster's spec but seldom wanted, each
// as a sentence for an event.
func Warnings(c *EtcdCluster) []string {
	var warnings []string
	if n := c.Spec.Size; n%2 == 0 && n >= minSize && n <= maxSize {
		warnings = append(warnings, fmt.Sprintf("spec.size is even: %d members survive the loss of %d, as %d would, "+
			"and one more of them can fail; prefer %d or %d", n, (n-1)/2, n-1, n-1, n+1))
	}
	return warnings
}
