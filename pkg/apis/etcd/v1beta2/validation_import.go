// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxImportEndpoints = 9
	maxEndpointLength  = 512
)

var importEndpoint = regexp.MustCompile(`^https?://[^/?#@ ]+:[0-9]+$`)

func validateImport(s *ImportSource, path *field.Path) (errs field.ErrorList) {
	endpoints := path.Child("endpoints")
	switch n := len(s.Endpoints); {
	case n == 0:
		errs = append(errs, field.Required(endpoints, "name a client URL of each member"))
	case n > maxImportEndpoints:
		errs = append(errs, field.TooMany(endpoints, n, maxImportEndpoints))
	}
	known := map[string]bool{}
	for i, e := range s.Endpoints {
		if known[e] {
			errs = append(errs, field.Duplicate(endpoints.Index(i), e))
		}
		known[e] = true
		errs = append(errs, validateLength(e, maxEndpointLength, endpoints.Index(i))...)
		if !importEndpoint.MatchString(e) {
			errs = append(errs, field.Invalid(endpoints, e, "must be client URLs with a port, such as http://etcd-0.etcd:2379"))
		}
	}
	if methods := []ImportMethod{ImportJoin, ImportCopy}; s.Method != "" && !slices.Contains(methods, s.Method) {
		errs = append(errs, field.NotSupported(path.Child("method"), s.Method, methods))
	}
	return append(errs, validateObjectName(s.ClientTLSSecret, "Secret", path.Child("clientTLSSecret"))...)
}
