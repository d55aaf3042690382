// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// tls returns the configuration of the server. It reads the files at each handshake, because
// renewals replace them.
func (s *service) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config, err := s.identity()
			if err != nil {
				return nil, s.unavailable(err) // the client sees no more than a failed handshake
			}
			return config, nil
		},
	}
}

func (s *service) identity() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this server: %w", err)
	}
	authorities, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, fmt.Errorf("read the CAs of clients: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("read the CAs of clients: %s holds no certificate in PEM", s.CA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		// A ticket would outlast the CA that a renewal has removed.
		SessionTicketsDisabled: true,
	}, nil
}
