// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire knows which of the protocols for streams through the API server is spoken.
package wire

import "k8s.io/streaming/pkg/httpstream"

// RefusesWebSockets reports whether the API server, or a proxy before it, refuses
// WebSockets. The plugin then tries SPDY.
func RefusesWebSockets(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}
