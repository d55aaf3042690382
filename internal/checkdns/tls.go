// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// Certificate names the files of a member's certificate, its private key and the CA that
// signed the certificates of all members. The zero value is for members that talk in plain
// text.
type Certificate struct{ Cert, Key, CA string }

// PeerTransport returns the transport to etcd's peer listeners. It reads the files for each
// connection: check-dns may wait long, until somebody corrects the certificates.
func PeerTransport(cert Certificate) *http.Transport {
	dialer := &net.Dialer{Timeout: peerTimeout, Resolver: PureResolver()}
	dial := dialKnown(dialer)
	transport := &http.Transport{DialContext: dial}
	if cert == (Certificate{}) {
		return transport
	}
	transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		config, err := cert.load()
		if err != nil {
			return nil, err
		}
		if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, err
		}
		plain, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		conn := tls.Client(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, plain.Close())
		}
		return conn, nil
	}
	return transport
}

func (c Certificate) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("peer certificate: %w", err)
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("CA of the peers: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA of the peers: %s holds no certificate in PEM form", c.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// check returns an error unless the flags name all files or none, and fit the peers' scheme.
func (c Certificate) check(peers []string) error {
	if c == (Certificate{}) {
		return nil
	}
	if c.Cert == "" || c.Key == "" || c.CA == "" {
		return errors.New("-peer-cert, -peer-key and -peer-ca need each other")
	}
	if len(peers) == 0 {
		return errors.New("-peer-cert is of no use without -peer")
	}
	return nil
}
