// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// certUse is one of the uses that a cluster has for a Secret with a certificate.
type certUse struct {
	name  string // as in labels of metrics
	field string // of the spec, which names the Secret
	files certificate
	// secret is the name of the Secret, "" where there is no such use.
	secret func(*api.ClusterSpec) string
}

// certUses are all uses, in the order in which people read of them.
var certUses = []certUse{
	{"peer", "spec.TLS.static.member.peerSecret", peerCert, (*api.ClusterSpec).PeerSecret},
	{"server", "spec.TLS.static.member.serverSecret", serverCert, (*api.ClusterSpec).ServerSecret},
	{"operator", "spec.TLS.static.operatorSecret", operatorCert, (*api.ClusterSpec).OperatorSecret},
}

// identityIn reads the identity that a Secret holds for a use. Errors name the
// Secret and its keys and tell nothing of what is in them.
func (u certUse) identityIn(secret *corev1.Secret) (*etcd.Identity, certsecret.Form, *certProblem) {
	id, form, err := u.files.Identity(secret)
	switch {
	case err == nil:
		return id, form, nil
	case errors.As(err, new(*certsecret.MissingKeys)):
		return nil, form, &certProblem{reason: keyMissing, why: fmt.Sprintf("Secret %s (%s) %v", secret.Name, u.field, err), holdsPods: true}
	default:
		return nil, form, &certProblem{reason: certificateInvalid,
			why: fmt.Sprintf("Secret %s (%s): %v; put the right files into it", secret.Name, u.field, err), holdsPods: true}
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return notice.Shorten(strings.Join(names, ", "), 200)
}
