// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// failure is why a backup through one endpoint fails.
type failure struct {
	url string
	err error
}

func (f failure) Error() string { return f.url + ": " + cause(f.err) }
func (f failure) Unwrap() error { return f.err }

// failures are those of all endpoints, printed in one line.
type failures []error

func (f failures) Unwrap() []error { return f }

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// dialFailure matches the cause in gRPC's error for a failed connection.
var dialFailure = regexp.MustCompile(`Error while dialing: ([^"]*)"`)

// closedHandshake matches gRPC's error for a server that does not speak TLS, or closes the
// connection.
var closedHandshake = regexp.MustCompile(`authentication handshake failed: (EOF|[^"]*connection reset by peer)`)

// cause returns a short reason for a failed call, without the endpoint, and what to do if that
// is known.
func cause(err error) string {
	if etcd.IsTLSFailure(err) {
		return fmt.Sprintf("%v: %s", etcd.ErrTLS, etcd.TLSCause(err))
	}
	if m := dialFailure.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	switch text := err.Error(); {
	case closedHandshake.MatchString(text):
		return "it answers, and not by TLS: write http:// before the endpoint if etcd serves without TLS, or correct its port"
	case strings.Contains(text, "error reading server preface"):
		return "it answers, and not as etcd without TLS does: write https:// before the endpoint if etcd serves with TLS, or correct its host and port"
	}
	denied := etcd.IsDenied(err)
	// Everything up to the endpoint's name would repeat what the caller says.
	for inner := errors.Unwrap(err); inner != nil && !errors.Is(err, errBehind); inner = errors.Unwrap(err) {
		err = inner
	}
	if denied {
		return fmt.Sprintf("%v: authentication is enabled: a snapshot needs a user with the role root, by its password or by the common name of a client certificate", err)
	}
	return err.Error()
}
