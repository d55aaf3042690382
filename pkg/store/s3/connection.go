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
	// dialTime bounds the dialling of a connection.
	dialTime = 10 * time.Second
	// answerTime bounds the wait for the answer to a complete request. The context bounds the
	// transfer of bodies.
	answerTime = 30 * time.Second
)

// newHTTPClient returns the client that fetches credentials. It keeps no idle connections,
// because nobody could close them.
func newHTTPClient(ca []byte) (*awshttp.BuildableClient, error) {
	var pool *x509.CertPool
	if len(ca) > 0 {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool() // the system has none
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

// newTransport returns the transport for the bucket itself.
func newTransport(client *awshttp.BuildableClient) *http.Transport {
	t := client.GetTransport()
	t.DisableKeepAlives = false
	t.DialContext = store.Watched(t.DialContext)
	// Parts must use several connections, as Amazon advises. HTTP/2 would divide one among
	// them.
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	// Larger buffers reduce the garbage of each request's copies.
	t.WriteBufferSize = 64 << 10
	return t
}

// dontFollow: a request's signature is for its original host.
func dontFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
