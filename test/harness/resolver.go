// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net"
	"net/url"
)

// Resolver asks the DNS of the local Kubernetes, as pods do. It listens where the API server
// does.
func (e *Env) Resolver() (*net.Resolver, error) {
	server, err := url.Parse(e.REST.Host)
	if err != nil {
		return nil, err
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server.Hostname(), "53"))
	}}, nil
}
