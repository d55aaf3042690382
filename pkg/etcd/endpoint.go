// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ErrEndpoint is wrapped by the errors of ParseEndpoint.
var ErrEndpoint = errors.New("wrong etcd endpoint")

// ParseEndpoint reads an endpoint as users write it: the URL of a member's client port, or of
// a Service in front of members. Like etcd's own clients, it completes HOST:PORT with https if
// the client has certificates and with http otherwise, and ignores a path.
func ParseEndpoint(text string, certificates bool) (Endpoint, error) {
	given := text
	if !strings.Contains(text, "://") {
		text = "http://" + text
		if certificates {
			text = "https://" + given
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // the outer text repeats the URL
		}
		if at := strings.LastIndex(given, "@"); at >= 0 {
			given, err = given[at+1:], errors.New("it can't be parsed") // it may contain a password
		}
		return Endpoint{}, fmt.Errorf("%w %q: %w: write it as http://HOST:2379 or https://HOST:2379", ErrEndpoint, given, err)
	}
	wrong := ""
	switch port, err := strconv.ParseUint(u.Port(), 10, 16); {
	case u.User != nil:
		// The error does not repeat the user.
		return Endpoint{}, fmt.Errorf("%w %q: a user in the URL has no meaning: omit it, and name the Secret of a certificate", ErrEndpoint, u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		wrong = fmt.Sprintf("the scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		wrong = "it names no host"
	case u.Port() == "":
		wrong = "it names no port"
	case err != nil || port == 0:
		wrong = fmt.Sprintf("there is no port %s", u.Port())
	}
	if wrong != "" {
		return Endpoint{}, fmt.Errorf("%w %q: %s: write it as http://HOST:2379 or https://HOST:2379", ErrEndpoint, given, wrong)
	}
	return Endpoint{URL: u.Scheme + "://" + u.Host}, nil
}
