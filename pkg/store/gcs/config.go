// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Config says where the objects are and who asks for them.
type Config struct {
	// Bucket must exist.
	Bucket string
	// Endpoint is the URL of the service, with or without the path of its API, such
	// as http://fake-gcs-server:4443/storage/v1/. Default: Google's public one.
	Endpoint string

	// AccessToken is an OAuth 2 token. It is not renewed.
	AccessToken string
	// CredentialsJSON is the key file of a service account, or the credentials of a
	// user as gcloud writes them; what it says of other kinds, see credentials.go.
	CredentialsJSON []byte
	// Without both, the application default credentials of this process count, but
	// only for Google's own endpoints: another one is sent requests without any, or
	// whoever names it could have this process's token.
}

// publicEndpoint is where the API is that a path is missing from an endpoint.
const (
	publicEndpoint = "https://storage.googleapis.com/storage/v1/"
	apiPath        = "/storage/v1/"
)

// endpoint is the URL of the API, which ends with a slash. google tells whether it
// is one of Google's own, where the tokens of this process may be sent to.
func (c Config) endpoint() (base string, google bool, err error) {
	if c.Endpoint == "" {
		return publicEndpoint, true, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The URL is not told: it may hold a password.
		return "", false, fmt.Errorf("%w: endpoint must be a URL such as %s", store.ErrConfig, publicEndpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = apiPath
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.String(), isGoogle(u), nil
}

// isGoogle tells whether a URL is one of Google's own APIs.
func isGoogle(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && u.Port() == "" && (host == "googleapis.com" || strings.HasSuffix(host, ".googleapis.com"))
}

// takesTokensFrom tells whether this process asks an address for tokens: one of
// Google's, or one on the very host that requests go to, such as an emulator. What
// names others is a Secret, whose writer is not who runs this process, and may not
// have it send requests into its network.
func (c Config) takesTokensFrom(address *url.URL) bool {
	if isGoogle(address) {
		return true
	}
	endpoint, err := url.Parse(c.Endpoint)
	return err == nil && address.User == nil && endpoint.Hostname() != "" && strings.EqualFold(endpoint.Hostname(), address.Hostname())
}
