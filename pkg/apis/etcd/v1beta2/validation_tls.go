// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateTLS(t *StaticTLS, path *field.Path) field.ErrorList {
	errs := validateObjectName(t.OperatorSecret, "Secret", path.Child("operatorSecret"))
	var member MemberSecret
	if t.Member != nil {
		member = *t.Member
	}
	errs = append(errs, validateObjectName(member.PeerSecret, "Secret", path.Child("member", "peerSecret"))...)
	errs = append(errs, validateObjectName(member.ServerSecret, "Secret", path.Child("member", "serverSecret"))...)
	if (t.OperatorSecret == "") != (member.ServerSecret == "") {
		errs = append(errs, field.Invalid(path, "", "operatorSecret and member.serverSecret belong together: "+
			"without the one the operator could not talk to the members, without the other they would not ask it for a certificate"))
	}
	return errs
}
