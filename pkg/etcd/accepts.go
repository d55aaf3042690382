// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Role is the use of a certificate in a handshake.
type Role int

// The roles of a certificate.
const (
	AsServer Role = iota
	AsClient
)

func (r Role) String() string {
	if r == AsClient {
		return "client"
	}
	return "server"
}

func (r Role) usage() x509.ExtKeyUsage {
	if r == AsClient {
		return x509.ExtKeyUsageClientAuth
	}
	return x509.ExtKeyUsageServerAuth
}

// Reasons why one identity does not accept the other. The errors of Accepts wrap them.
var (
	// ErrOutOfDate: a certificate has expired, or is not valid yet.
	ErrOutOfDate = errors.New("a certificate has expired or is not valid yet")
	// ErrUnknownCA: none of the CAs has signed the certificate.
	ErrUnknownCA = errors.New("it is signed by none of the CAs")
	// ErrUsage: the certificate's extended key usage excludes the role.
	ErrUsage = errors.New("its extended key usage does not allow it")
)

// Accepts reports why a process with the identity id rejects the certificate of other in a
// role; nil: it accepts. Host names do not count. Time only matters for ErrOutOfDate.
func (id *Identity) Accepts(other *Identity, role Role, now time.Time) error {
	err := id.verify(other, role.usage(), now)
	if err == nil {
		return nil
	}
	// A certificate that would be accepted at another time is out of date, whatever error x509
	// returns. One that never would be has another fault.
	for _, at := range []time.Time{other.leaf.NotBefore, other.leaf.NotAfter} {
		then := id.verify(other, role.usage(), at)
		if then == nil {
			return ErrOutOfDate
		}
		if isDated(err) {
			err = then
		}
	}
	var invalid x509.CertificateInvalidError
	switch {
	case isDated(err):
		return ErrOutOfDate
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Errorf("as a %s: %w", role, ErrUsage)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return ErrUnknownCA
	}
	return err
}

func isDated(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

func (id *Identity) verify(other *Identity, usage x509.ExtKeyUsage, at time.Time) error {
	opts := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage},
	}
	for _, ca := range id.cas {
		opts.Roots.AddCert(ca)
	}
	for _, c := range other.intermediates {
		opts.Intermediates.AddCert(c)
	}
	_, err := other.leaf.Verify(opts)
	return err
}

// RefusedBy reports whether a process that holds these CAs alone is sure to refuse the
// certificate, because none of them has signed it. They are as CAs returns them.
func (id *Identity) RefusedBy(cas []string, now time.Time) bool {
	if !errors.Is(id.holding(cas).Accepts(id, AsServer, now), ErrUnknownCA) {
		return false
	}
	// If the signer of one of the certificates is not here, it may be one of the CAs.
	all := slices.Concat([]*x509.Certificate{id.leaf}, id.intermediates, id.cas)
	return !slices.ContainsFunc(all, func(c *x509.Certificate) bool {
		return !slices.ContainsFunc(all, func(by *x509.Certificate) bool {
			return by.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
		})
	})
}

// AcceptedBy reports whether such a process is sure to accept the certificate.
func (id *Identity) AcceptedBy(cas []string, now time.Time) bool {
	other := id.holding(cas)
	return other.Accepts(id, AsServer, now) == nil && other.Accepts(id, AsClient, now) == nil
}

// holding returns an identity with those of these CAs that id knows.
func (id *Identity) holding(cas []string) *Identity {
	known := slices.Concat(id.intermediates, id.cas)
	return &Identity{cas: slices.DeleteFunc(known, func(ca *x509.Certificate) bool { return !slices.Contains(cas, markOf(ca)) })}
}

// PassesPeerCheck reports whether members may accept connections from a member with this
// identity and host name. Besides the signature, etcd checks that the certificate covers the
// address of the peer's connection: the address itself, a name that resolves to it, or a
// wildcard that fits the result of a reverse lookup (client/pkg/transport/listener_tls.go). In
// Kubernetes, that result is the host name with the cluster's domain behind it. complete means
// that the host name has the domain already. PassesPeerCheck only fails for certificates that
// etcd is sure to reject, since it cannot resolve names and may not know the domain.
func (id *Identity) PassesPeerCheck(host string, complete bool) bool {
	if len(id.leaf.DNSNames) == 0 || len(id.leaf.IPAddresses) > 0 {
		return true
	}
	_, parent, _ := strings.Cut(host, ".")
	for _, name := range id.leaf.DNSNames {
		suffix, wildcard := strings.CutPrefix(name, "*.")
		switch {
		case !wildcard && name != "localhost":
			return true
		case wildcard && complete && strings.HasSuffix(host, "."+suffix):
			return true
		case wildcard && !complete && !strings.HasSuffix("."+parent, "."+suffix):
			return true // the certificate's name has a domain behind the host's
		}
	}
	return false
}
