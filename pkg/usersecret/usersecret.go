// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usersecret reads a user of etcd from a Secret.
package usersecret

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Wanted says which keys a Secret must have, at the end of a sentence.
const Wanted = "with the keys " + corev1.BasicAuthUsernameKey + " and " + corev1.BasicAuthPasswordKey + " of a user of etcd with the role root"

// Of returns the user in a Secret. The keys are those of the type kubernetes.io/basic-auth. An
// error names the Secret and what is missing, and contains no value.
func Of(secret *corev1.Secret) (etcd.Credentials, error) {
	var missing []string
	for _, key := range []string{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey} {
		if len(secret.Data[key]) == 0 {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		return etcd.Credentials{}, fmt.Errorf("the Secret %s lacks %s: fill it %s", secret.Name, strings.Join(missing, " and "), Wanted)
	}
	return etcd.Credentials{
		Username: string(secret.Data[corev1.BasicAuthUsernameKey]),
		Password: string(secret.Data[corev1.BasicAuthPasswordKey]),
	}, nil
}
