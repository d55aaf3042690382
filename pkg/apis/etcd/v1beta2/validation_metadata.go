// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Labels and annotations as Kubernetes knows them.

const (
	maxLabels            = 64
	maxLabelValueLength  = 63
	maxKeyPrefixLength   = 253
	maxAnnotationLength  = 1 << 16
	maxAnnotationsLength = 200000
)

var (
	labelKeyFormat = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?` +
		`[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	labelValueFormat    = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`)
	annotationKeyFormat = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*/)?` +
		`[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
)

func validateLabels(labels map[string]string, path *field.Path) (errs field.ErrorList) {
	if len(labels) > maxLabels {
		errs = append(errs, field.TooMany(path, len(labels), maxLabels))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		errs = append(errs, validateKey(key, labelKeyFormat, path)...)
		errs = append(errs, validateLength(labels[key], maxLabelValueLength, path.Child(key))...)
		if !labelValueFormat.MatchString(labels[key]) {
			errs = append(errs, field.Invalid(path.Child(key), labels[key], "must have values as Kubernetes knows them: "+
				"letters, digits, dashes, dots and underscores, with a letter or digit first and last"))
		}
	}
	return errs
}

func validateAnnotations(annotations map[string]string, path *field.Path) (errs field.ErrorList) {
	if len(annotations) > maxLabels {
		errs = append(errs, field.TooMany(path, len(annotations), maxLabels))
	}
	total := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		total += len(key) + len(annotations[key])
		errs = append(errs, validateKey(key, annotationKeyFormat, path)...)
		errs = append(errs, validateLength(annotations[key], maxAnnotationLength, path.Child(key))...)
	}
	if total > maxAnnotationsLength {
		errs = append(errs, field.Invalid(path, total, fmt.Sprintf("must hold at most %d bytes: "+
			"Kubernetes keeps no more than 256 KiB, and others add theirs", maxAnnotationsLength)))
	}
	return errs
}

func validateKey(key string, format *regexp.Regexp, path *field.Path) field.ErrorList {
	if strings.Index(key, "/") <= maxKeyPrefixLength && format.MatchString(key) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, key, "must have keys as Kubernetes knows them: "+
		"at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash")}
}
