// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates of a local Kubernetes: one authority and the
// certificates that it signs. They are valid as long as the cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// life is longer than anybody keeps a local cluster.
const life = 10 * 365 * 24 * time.Hour

// A Pair is a certificate and its key in PEM.
type Pair struct{ Cert, Key []byte }

// An Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template(name)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	p, err := encode(der, key)
	return &Authority{Pair: p, cert: cert, key: key}, err
}

// Client signs a certificate for a user and its groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	t, err := template(user)
	if err != nil {
		return Pair{}, err
	}
	t.Subject.Organization = groups
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t)
}

// Server signs a certificate for names and addresses.
func (a *Authority) Server(name string, names []string, addrs ...netip.Addr) (Pair, error) {
	t, err := template(name)
	if err != nil {
		return Pair{}, err
	}
	t.DNSNames = names
	for _, addr := range addrs {
		t.IPAddresses = append(t.IPAddresses, net.IP(addr.AsSlice()))
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(t)
}

func (a *Authority) sign(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate for %s: %w", t.Subject.CommonName, err)
	}
	return encode(der, key)
}

// NewKey makes a private key and its public key in PEM, as service account
// tokens need them.
func NewKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return block("EC PRIVATE KEY", der), block("PUBLIC KEY", pub), nil
}

func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// A small step back of the clock must not break the cluster.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(life),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	k, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: block("CERTIFICATE", der), Key: block("EC PRIVATE KEY", k)}, nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
