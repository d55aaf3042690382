// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minPatience, maxPatience = 60, 604800
	minMaxLost, maxMaxLost   = 60, 31536000
)

func validateRecovery(p *RecoveryPolicy, path *field.Path) (errs field.ErrorList) {
	if p.Mode != "" && p.Mode != RecoveryManual && p.Mode != RecoveryAutomatic {
		errs = append(errs, field.NotSupported(path.Child("mode"), p.Mode, []RecoveryMode{RecoveryAutomatic, RecoveryManual}))
	}
	errs = append(errs, validateRange(p.PatienceInSecond, minPatience, maxPatience, path.Child("patienceInSecond"))...)
	if p.MaxLostRevisions < 0 {
		errs = append(errs, field.Invalid(path.Child("maxLostRevisions"), p.MaxLostRevisions, "should be greater than or equal to 0"))
	}
	return append(errs, validateRange(p.MaxLostInSecond, minMaxLost, maxMaxLost, path.Child("maxLostInSecond"))...)
}

// validateRange is for a number that may be unset.
func validateRange(n *int64, least, most int64, path *field.Path) field.ErrorList {
	switch {
	case n != nil && *n < least:
		return field.ErrorList{field.Invalid(path, *n, fmt.Sprintf("should be greater than or equal to %d", least))}
	case n != nil && *n > most:
		return field.ErrorList{field.Invalid(path, *n, fmt.Sprintf("should be less than or equal to %d", most))}
	}
	return nil
}
