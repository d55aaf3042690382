// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	// dialTime bounds the making of a connection.
	dialTime = 10 * time.Second
	// answerTime bounds how long the answer to a request that was sent may take. It
	// does not bound the sending and the reading of bodies: the context does.
	answerTime = 30 * time.Second
)

// newHTTPClient is the client by which credentials are asked for. It keeps no
// connections, as nobody could close those.
func newHTTPClient(ca []byte) (*awshttp.BuildableClient, error) {
	var pool *x509.CertPool
	if len(ca) > 0 {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool() // there are none
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%w: ca.crt holds no certificate in PEM", store.ErrConfig)
		}
	}
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTime }).
		WithTransportOptions(func(t *http.Transport) {
			t.DisableKeepAlives = true
			t.ResponseHeaderTimeout = answerTime
			if pool != nil {
				t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
			}
		})
	return client, nil
}

// newTransport is the one for the bucket itself.
func newTransport(client *awshttp.BuildableClient) *http.Transport {
	t := client.GetTransport()
	t.DisableKeepAlives = false
	t.DialContext = store.Watched(t.DialContext)
	// Parts are sent over several connections, as to Amazon, and not over one that
	// HTTP/2 divides among them.
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	// The garbage that each request otherwise makes of its copies.
	t.WriteBufferSize = 64 << 10
	return t
}

// dontFollow: a request is signed for the host it was meant for.
func dontFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
