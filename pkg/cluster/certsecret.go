// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
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

// formOf tells by which names a Secret's keys go. Where both are whole, those of
// v0.9.4 count. Where neither is, missing names the keys that are not there.
func (c certificate) formOf(data map[string][]byte) (form certForm, missing []string) {
	absent := func(form certForm) []string {
		cert, key, ca := c.keys(form)
		return slices.DeleteFunc([]string{cert, key, ca}, func(name string) bool { return len(data[name]) > 0 })
	}
	static, certManager := absent(formStatic), absent(formCertManager)
	switch {
	case len(static) == 0:
		return formStatic, nil
	case len(certManager) == 0:
		return formCertManager, nil
	case len(certManager) < len(static):
		return formCertManager, certManager
	default:
		return formStatic, static
	}
}

// identityIn reads the identity that a Secret holds for a use. Errors name the
// Secret and its keys and tell nothing of what is in them.
func (u certUse) identityIn(secret *corev1.Secret) (*etcd.Identity, certForm, *certProblem) {
	form, missing := u.files.formOf(secret.Data)
	if len(missing) > 0 {
		return nil, form, &certProblem{reason: keyMissing, why: fmt.Sprintf("Secret %s (%s) lacks %s: it has %s; add what is missing, %s",
			secret.Name, u.field, strings.Join(missing, " and "), orNothing(slices.Sorted(maps.Keys(secret.Data))), u.wanted()), holdsPods: true}
	}
	cert, key, ca := u.files.keys(form)
	file := func(name string) etcd.PEMFile { return etcd.PEMFile{Name: name, Content: secret.Data[name]} }
	id, err := etcd.ParseIdentity(file(cert), file(key), file(ca))
	if err != nil {
		return nil, form, &certProblem{reason: certificateInvalid,
			why: fmt.Sprintf("Secret %s (%s): %v; put the right files into it", secret.Name, u.field, err), holdsPods: true}
	}
	return id, form, nil
}

// wanted tells which keys a Secret has to have.
func (u certUse) wanted() string {
	return fmt.Sprintf("it must hold %s, %s and %s, or tls.crt, tls.key and ca.crt", u.files.cert, u.files.key, u.files.ca)
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return shorten(strings.Join(names, ", "), 200)
}
