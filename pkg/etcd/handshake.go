// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verdictWait is how long a member's verdict on the client's certificate is
// waited for. It says nothing if it likes it.
const verdictWait = 500 * time.Millisecond

// errTLS is wrapped by failures of which a handshake of its own has found the cause.
var errTLS = errors.New("client and member don't accept each other's certificates")

// IsTLSFailure tells whether a call failed because client and member don't accept
// each other's certificates, or one of them talks plain text. The member itself
// may be well.
func IsTLSFailure(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errTLS) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) {
		return true
	}
	// gRPC keeps of an error no more than its text.
	for _, sign := range []string{"authentication handshake failed: tls:", "authentication handshake failed: x509:", "remote error: tls:"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}

// explain finds out whether TLS is why a call failed, where gRPC doesn't tell.
// With TLS 1.3 a server judges the client's certificate after the client's part of
// the handshake is over. gRPC has begun to write by then, and what it gets to see
// is at times no more than a connection that was closed.
func (c *Conn) explain(ctx context.Context, err error) error {
	if c.tls == nil || IsTLSFailure(err) || status.Code(err) != codes.Unavailable {
		return err
	}
	u, parseErr := url.Parse(c.url)
	if parseErr != nil {
		return err
	}
	cfg := c.tls.Clone()
	cfg.ServerName = u.Hostname()
	conn, dialErr := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", c.address)
	if dialErr != nil {
		if IsTLSFailure(dialErr) {
			return fmt.Errorf("%w: %w", errTLS, dialErr)
		}
		return err
	}
	defer conn.Close()
	if conn.SetReadDeadline(time.Now().Add(verdictWait)) != nil {
		return err
	}
	_, readErr := conn.Read(make([]byte, 1))
	if refusal := (*net.OpError)(nil); errors.As(readErr, &refusal) && refusal.Op == "remote error" {
		return fmt.Errorf("%w: the member refuses the client's: %w", errTLS, readErr)
	}
	return err
}
