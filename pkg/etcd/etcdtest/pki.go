// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA signs certificates for tests.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the CA's certificate.
	PEM []byte
}

// Leaf describes a certificate. By default, servers and clients may use it, and it is valid
// from an hour ago for a year.
type Leaf struct {
	Name     string // common name
	DNS      []string
	IPs      []net.IP
	Usages   []x509.ExtKeyUsage
	From, To time.Time
}

// NewCA makes a CA that is valid from an hour ago for ten years.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	return NewCAUntil(t, name, time.Now().AddDate(10, 0, 0))
}

// NewCAUntil makes a CA that expires at a time.
func NewCAUntil(t testing.TB, name string, to time.Time) *CA {
	t.Helper()
	ca := &CA{t: t, key: newKey(t), cert: &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: earlier(time.Now(), to).Add(-time.Hour), NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	return ca.SignedBy(ca)
}

// SignedBy returns the CA, with its name and its key, in another certificate that a CA has signed. By
// itself, it is renewed.
func (ca *CA) SignedBy(by *CA) *CA {
	ca.t.Helper()
	template := *ca.cert
	template.SerialNumber = serial(ca.t)
	signed := &CA{t: ca.t, key: ca.key}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.cert, &ca.key.PublicKey, by.key)
	if err == nil {
		signed.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		ca.t.Fatalf("make the CA %s: %v", ca.cert.Subject, err)
	}
	signed.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return signed
}

// Issue makes a certificate with its key, both in PEM.
func (ca *CA) Issue(leaf Leaf) (cert, key []byte) {
	ca.t.Helper()
	if leaf.Usages == nil {
		leaf.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	if leaf.To.IsZero() {
		leaf.To = time.Now().AddDate(1, 0, 0)
	}
	if leaf.From.IsZero() {
		leaf.From = earlier(time.Now(), leaf.To).Add(-time.Hour)
	}
	private := newKey(ca.t)
	template := &x509.Certificate{
		SerialNumber: serial(ca.t), Subject: pkix.Name{CommonName: leaf.Name},
		NotBefore: leaf.From, NotAfter: leaf.To, DNSNames: leaf.DNS, IPAddresses: leaf.IPs,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: leaf.Usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &private.PublicKey, ca.key)
	if err != nil {
		ca.t.Fatalf("make the certificate %s: %v", leaf.Name, err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		ca.t.Fatalf("encode the key of %s: %v", leaf.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatalf("make a serial number: %v", err)
	}
	return n
}
