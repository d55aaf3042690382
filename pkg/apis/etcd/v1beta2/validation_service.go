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
	maxBridges             = 8
	sourceRangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges"
)

var (
	serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	hostName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

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
	errs = append(errs, validateLabels(s.Selector, path.Child("selector"))...)
	return append(errs, validateBridges(s.Bridges, path.Child("bridges"))...)
}

func validateBridges(bridges []ServiceBridge, path *field.Path) (errs field.ErrorList) {
	if n := len(bridges); n > maxBridges {
		errs = append(errs, field.TooMany(path, n, maxBridges))
	}
	known := map[string]bool{}
	for i, b := range bridges {
		name, hostnames := path.Index(i).Child("name"), path.Index(i).Child("hostnames")
		if known[b.Name] {
			errs = append(errs, field.Duplicate(path.Index(i), b.Name))
		}
		known[b.Name] = true
		errs = append(errs, validateLength(b.Name, maxServiceNameLength, name)...)
		if !serviceName.MatchString(b.Name) {
			errs = append(errs, field.Invalid(name, b.Name,
				"must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"))
		}
		if n := len(b.Hostnames); n > maxImportEndpoints {
			errs = append(errs, field.TooMany(hostnames, n, maxImportEndpoints))
		}
		hosts := map[string]bool{}
		for j, h := range b.Hostnames {
			if hosts[h] {
				errs = append(errs, field.Duplicate(hostnames.Index(j), h))
			}
			hosts[h] = true
			errs = append(errs, validateLength(h, maxServiceNameLength, hostnames.Index(j))...)
			if !hostName.MatchString(h) {
				errs = append(errs, field.Invalid(hostnames, h,
					"hostnames must be DNS labels: lowercase letters, digits and dashes, with a letter or digit first and last"))
			}
		}
	}
	return errs
}
