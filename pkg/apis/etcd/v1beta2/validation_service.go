// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxServiceNameLength   = 63
	sourceRangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges"
)

var serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func validateService(s *ServicePolicy, path *field.Path) field.ErrorList {
	errs := validateLength(s.Name, maxServiceNameLength, path.Child("name"))
	if s.Name != "" && !serviceName.MatchString(s.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), s.Name,
			"must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		if strings.HasPrefix(key, OperatorAnnotations) {
			errs = append(errs, field.Invalid(path.Child("annotations"), key,
				"must not contain keys that begin with etcd.database.coreos.com/: the operator keeps its notes there"))
		}
	}
	if _, found := s.Annotations[sourceRangesAnnotation]; found {
		errs = append(errs, field.Invalid(path.Child("annotations"), sourceRangesAnnotation,
			"annotations must not contain "+sourceRangesAnnotation+": Kubernetes takes it for Services of type LoadBalancer alone"))
	}
	errs = append(errs, validateAnnotations(s.Annotations, path.Child("annotations"))...)
	return append(errs, validateLabels(s.Selector, path.Child("selector"))...)
}
