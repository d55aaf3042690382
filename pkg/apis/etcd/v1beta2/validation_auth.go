// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateUserSecret(a *AuthPolicy, path *field.Path) field.ErrorList {
	if a.CredentialsSecret == "" {
		return field.ErrorList{field.Required(path.Child("credentialsSecret"), "name the Secret with the user")}
	}
	return validateObjectName(a.CredentialsSecret, "Secret", path.Child("credentialsSecret"))
}
