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
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verdictWait is how long explain waits for a member's verdict on the client's certificate. A
// member that accepts it sends none.
const verdictWait = 500 * time.Millisecond

// ErrTLS is wrapped by errors of calls to members that failed because of TLS.
var ErrTLS = errors.New("client and member don't accept each other's certificates")

// IsTLSFailure reports whether a call failed because client and member do not accept each
// other's certificates, or one of them talks plain text. The member itself may be healthy.
func IsTLSFailure(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrTLS) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) {
		return true
	}
	// gRPC keeps only the text of an error.
	for _, sign := range []string{"authentication handshake failed: tls:", "authentication handshake failed: x509:", "remote error: tls:"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}

// explain finds out whether TLS made a call fail, if gRPC's error does not say so. With TLS
// 1.3, a server judges the client's certificate after the client's part of the handshake has
// ended. gRPC may already write by then, and sometimes sees only a closed connection.
func (c *Conn) explain(ctx context.Context, err error) error {
	if status.Code(err) != codes.Unavailable {
		return err
	}
	if IsTLSFailure(err) {
		return tlsFailure(err)
	}
	if c.tls == nil {
		return err
	}
	u, parseErr := url.Parse(c.url)
	if parseErr != nil {
		return err
	}
	cfg := c.tls.Clone()
	cfg.ServerName = u.Hostname()
	raw, dialErr := c.through(ctx, c.address)
	if dialErr != nil {
		return err
	}
	defer raw.Close()
	conn := tls.Client(raw, cfg)
	if handshakeErr := conn.HandshakeContext(ctx); handshakeErr != nil {
		if IsTLSFailure(handshakeErr) {
			return tlsFailure(handshakeErr)
		}
		return err
	}
	if conn.SetReadDeadline(time.Now().Add(verdictWait)) != nil {
		return err
	}
	_, readErr := conn.Read(make([]byte, 1))
	if refusal := (*net.OpError)(nil); errors.As(readErr, &refusal) && refusal.Op == "remote error" {
		return tlsFailure(readErr)
	}
	return err
}

var (
	// handshakeCause matches the cause in gRPC's error.
	handshakeCause = regexp.MustCompile(`(?:authentication handshake failed: |error reading server preface: )([^"]*)`)
	// currentTime matches the time in an error, which differs in each attempt.
	currentTime = regexp.MustCompile(`: current time \S+ is (before|after) (\S+)`)
)

// tlsFailure is ErrTLS with its cause.
func tlsFailure(err error) error { return fmt.Errorf("%w: %s", ErrTLS, TLSCause(err)) }

// TLSCause says why client and member do not accept each other. The text is the same each
// time, so that repeated events merge. IsTLSFailure must be true of the error.
func TLSCause(err error) string {
	text := err.Error()
	if _, cause, ok := strings.Cut(text, ErrTLS.Error()+": "); ok {
		return cause
	}
	if m := handshakeCause.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	if _, refusal, ok := strings.Cut(text, "remote error: tls: "); ok {
		text = "the member refuses the operator's: " + refusal
	}
	return currentTime.ReplaceAllString(text, " (it is $1 $2)")
}
