// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// PEMFile is a file in PEM, with the name under which its author knows it. Errors contain the
// name and never the content.
type PEMFile struct {
	Name    string
	Content []byte
}

// Identity is a certificate with its key, by which others know a process, and the CAs by which
// the process knows others. A member has one for its peers and one for its clients. The
// operator has one as a client.
type Identity struct {
	pair tls.Certificate
	leaf *x509.Certificate
	// intermediates follow the leaf in its file.
	intermediates []*x509.Certificate
	cas           []*x509.Certificate
}

// ParseIdentity reads an identity and checks that the key fits the certificate. Accepts
// reports whether others accept it.
func ParseIdentity(cert, key, ca PEMFile) (*Identity, error) {
	chain, err := parseCertificates(cert)
	if err != nil {
		return nil, err
	}
	cas, err := parseCertificates(ca)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(key.Content); block == nil {
		return nil, fmt.Errorf("%s holds no private key in PEM", key.Name)
	}
	// The error is not wrapped: it may quote the key.
	pair, err := tls.X509KeyPair(cert.Content, key.Content)
	if err != nil {
		return nil, fmt.Errorf("%s is not the private key of %s, or is encrypted, or of a kind that Go does not know", key.Name, cert.Name)
	}
	return &Identity{pair: pair, leaf: chain[0], intermediates: chain[1:], cas: cas}, nil
}

func parseCertificates(f PEMFile) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for block, rest := pem.Decode(f.Content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds something else than certificates: it must hold nothing but them", f.Name)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s holds a certificate that can't be read: %w", f.Name, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no certificate in PEM", f.Name)
	}
	return list, nil
}

// ClientConfig returns the TLS configuration of a client with this identity. A server's
// certificate must be valid for the dialled URL's name. With skipVerify, the client accepts
// every server.
func (id *Identity) ClientConfig(skipVerify bool) *tls.Config {
	roots := x509.NewCertPool()
	for _, ca := range id.cas {
		roots.AddCert(ca)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    roots,
		// The client sends its certificate even if no CA that the server names has signed it.
		// The server's error then says more than that there is no certificate.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &id.pair, nil },
		InsecureSkipVerify:   skipVerify,
	}
}

// CADigest is the same for the same set of CAs, whatever their order and layout.
func (id *Identity) CADigest() string {
	raw := make([][]byte, len(id.cas))
	for i, ca := range id.cas {
		raw[i] = ca.Raw
	}
	slices.SortFunc(raw, bytes.Compare)
	raw = slices.CompactFunc(raw, bytes.Equal)
	sum := sha256.New()
	for _, r := range raw {
		sum.Write(r)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// CAs identifies the CAs, sorted. One that was renewed with its name and key stays the same.
func (id *Identity) CAs() []string {
	marks := make([]string, len(id.cas))
	for i, ca := range id.cas {
		marks[i] = markOf(ca)
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

func markOf(ca *x509.Certificate) string {
	sum := sha256.Sum256(slices.Concat(ca.RawSubject, ca.RawSubjectPublicKeyInfo))
	return hex.EncodeToString(sum[:8])
}

// Validity is the period in which one certificate of an identity is valid.
type Validity struct {
	// CA is the subject of a CA's certificate; "": the certificate is the identity's own.
	CA       string
	From, To time.Time
}

// Validities returns the validity of the identity's own certificate and of all CAs, the first
// to expire first.
func (id *Identity) Validities() []Validity {
	list := []Validity{{From: id.leaf.NotBefore, To: id.leaf.NotAfter}}
	for _, ca := range slices.Concat(id.intermediates, id.cas) {
		if !bytes.Equal(ca.Raw, id.leaf.Raw) { // a self-signed certificate is its own CA
			list = append(list, Validity{CA: ca.Subject.String(), From: ca.NotBefore, To: ca.NotAfter})
		}
	}
	slices.SortStableFunc(list, func(a, b Validity) int { return a.To.Compare(b.To) })
	return list
}

// Covers reports whether the certificate is valid for a host name.
func (id *Identity) Covers(host string) bool { return id.leaf.VerifyHostname(host) == nil }

// Names returns the host names and addresses that the certificate is valid for.
func (id *Identity) Names() []string {
	names := slices.Clone(id.leaf.DNSNames)
	for _, ip := range id.leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
