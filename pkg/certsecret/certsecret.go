// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certsecret reads certificates for etcd from Secrets. It knows the names of their
// keys, and nothing of the certificates' use.
package certsecret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Form is how the keys of a Secret with a certificate are named.
type Form int

const (
	// Static keys are named after the certificate's use, as in v0.9.4 (peer.crt).
	Static Form = iota
	// CertManager keys are tls.crt, tls.key and ca.crt.
	CertManager
)

// Files are the keys of a Secret of the form Static: certificate, private key and CAs.
type Files struct{ Cert, Key, CA string }

var (
	// Client is the certificate by which etcd knows operators and users.
	Client = Files{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}
	// Server is the certificate that members show to clients.
	Server = Files{"server.crt", "server.key", "server-ca.crt"}
	// Peer is the certificate that members show to each other.
	Peer = Files{"peer.crt", "peer.key", "peer-ca.crt"}
)

// Keys returns the keys of a Secret of a form: certificate, private key and CA.
func (f Files) Keys(form Form) (cert, key, ca string) {
	if form == Static {
		return f.Cert, f.Key, f.CA
	}
	return corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"
}

// FormOf returns the form of a Secret. If the Secret has the keys of both forms, those of
// v0.9.4 count. If it lacks keys of both, missing names the absent keys of the form that it
// has more of.
func (f Files) FormOf(data map[string][]byte) (form Form, missing []string) {
	absent := func(form Form) []string {
		cert, key, ca := f.Keys(form)
		return slices.DeleteFunc([]string{cert, key, ca}, func(name string) bool { return len(data[name]) > 0 })
	}
	static, certManager := absent(Static), absent(CertManager)
	switch {
	case len(static) == 0:
		return Static, nil
	case len(certManager) == 0:
		return CertManager, nil
	case len(certManager) < len(static):
		return CertManager, certManager
	default:
		return Static, static
	}
}

// Wanted says which keys a Secret must have.
func (f Files) Wanted() string {
	return fmt.Sprintf("it must hold %s, %s and %s, or tls.crt, tls.key and ca.crt", f.Cert, f.Key, f.CA)
}

// Identity reads the identity in a Secret. The error is a MissingKeys if keys are absent. Any
// other error says which key has wrong content, and never quotes the content.
func (f Files) Identity(secret *corev1.Secret) (*etcd.Identity, Form, error) {
	form, missing := f.FormOf(secret.Data)
	if len(missing) > 0 {
		return nil, form, &MissingKeys{Missing: missing, Has: slices.Sorted(maps.Keys(secret.Data)), Files: f}
	}
	cert, key, ca := f.Keys(form)
	file := func(name string) etcd.PEMFile { return etcd.PEMFile{Name: name, Content: secret.Data[name]} }
	id, err := etcd.ParseIdentity(file(cert), file(key), file(ca))
	return id, form, err
}

// ClientIdentity reads the identity of a client of etcd, such as the one in an EtcdBackup's
// clientTLSSecret. Errors name the Secret, and the keys that it must hold.
func ClientIdentity(secret *corev1.Secret) (*etcd.Identity, error) {
	id, _, err := Client.Identity(secret)
	if errors.As(err, new(*MissingKeys)) {
		return nil, fmt.Errorf("read the client certificate: Secret %s %w", secret.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: Secret %s: %w; correct its files", secret.Name, err)
	}
	return id, nil
}

// MissingKeys is the error for a Secret that lacks keys of a certificate.
type MissingKeys struct {
	Missing []string
	Has     []string // all keys of the Secret
	Files   Files
}

// Error returns a text that follows the name of the Secret.
func (e *MissingKeys) Error() string {
	return fmt.Sprintf("lacks %s: it has %s; add what is missing, %s", strings.Join(e.Missing, " and "), list(e.Has), e.Files.Wanted())
}

// list bounds how many keys of a Secret an error names.
func list(names []string) string {
	const limit = 200
	text := strings.Join(names, ", ")
	switch {
	case text == "":
		return "nothing"
	case len(text) > limit:
		return text[:limit] + "…" // keys are ASCII
	}
	return text
}
