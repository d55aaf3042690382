// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxServiceNameLength = 63

var serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func validateService(s *ServicePolicy, path *field.Path) field.ErrorList {
	errs := validateLength(s.Name, maxServiceNameLength, path.Child("name"))
	if s.Name != "" && !serviceName.MatchString(s.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), s.Name,
			"must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"))
	}
	errs = append(errs, validateAnnotations(s.Annotations, path.Child("annotations"))...)
	return append(errs, validateLabels(s.Selector, path.Child("selector"))...)
}
