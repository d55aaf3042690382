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

// verdictWait is how long a member's verdict on the client's certificate is
// waited for. It says nothing if it likes it.
const verdictWait = 500 * time.Millisecond

// ErrTLS is wrapped by failures of calls to members that TLS is the cause of.
var ErrTLS = errors.New("client and member don't accept each other's certificates")

// IsTLSFailure tells whether a call failed because client and member don't accept
// each other's certificates, or one of them talks plain text. The member itself
// may be well.
func IsTLSFailure(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrTLS) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) {
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
	// handshakeCause is what gRPC wraps up.
	handshakeCause = regexp.MustCompile(`(?:authentication handshake failed: |error reading server preface: )([^"]*)`)
	// currentTime makes a text of its own of each attempt.
	currentTime = regexp.MustCompile(`: current time \S+ is (before|after) (\S+)`)
)

// tlsFailure is ErrTLS with its cause.
func tlsFailure(err error) error { return fmt.Errorf("%w: %s", ErrTLS, TLSCause(err)) }

// TLSCause says why client and member don't accept each other, in the same words
// each time: what is told again and again must not look new. The error is one of
// which IsTLSFailure is true.
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
