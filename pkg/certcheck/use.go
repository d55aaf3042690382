// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certcheck

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// CertUse is one of a cluster's uses of a Secret with a certificate.
type CertUse struct {
	Name  string // as in labels of metrics
	Field string // of the spec, which names the Secret
	Files manifest.Certificate
	// Secret is the name of the Secret, "" if the spec has no such use.
	Secret func(*api.ClusterSpec) string
}

// CertUses lists all uses, in the order for people.
var CertUses = []CertUse{
	{"peer", "spec.TLS.static.member.peerSecret", manifest.PeerCert, (*api.ClusterSpec).PeerSecret},
	{"server", "spec.TLS.static.member.serverSecret", manifest.ServerCert, (*api.ClusterSpec).ServerSecret},
	{"operator", "spec.TLS.static.operatorSecret", manifest.OperatorCert, (*api.ClusterSpec).OperatorSecret},
}

// IdentityIn reads the identity in a use's Secret. Errors name the Secret and its keys, and
// never quote the content.
func (u CertUse) IdentityIn(secret *corev1.Secret) (*etcd.Identity, certsecret.Form, *CertProblem) {
	id, form, err := u.Files.Identity(secret)
	switch {
	case err == nil:
		return id, form, nil
	case errors.As(err, new(*certsecret.MissingKeys)):
		return nil, form, &CertProblem{Reason: KeyMissing, Why: fmt.Sprintf("Secret %s (%s) %v", secret.Name, u.Field, err), HoldsPods: true}
	default:
		return nil, form, &CertProblem{Reason: CertificateInvalid,
			Why: fmt.Sprintf("Secret %s (%s): %v; correct its files", secret.Name, u.Field, err), HoldsPods: true}
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return notice.Shorten(strings.Join(names, ", "), 200)
}
