// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Config says where the objects are, and with which credentials.
type Config struct {
	// Bucket must exist.
	Bucket string
	// Endpoint is the URL of the service, with or without the path of its API, such
	// as http://fake-gcs-server:4443/storage/v1/. Default: Google's public one.
	Endpoint string

	// AccessToken is an OAuth 2 token. Nothing renews it.
	AccessToken string
	// CredentialsJSON is the key file of a service account, or the credentials of a user as
	// gcloud writes them. See credentials.go for other kinds.
	CredentialsJSON []byte
	// Without both, the application default credentials of this process count, but only for
	// Google's own endpoints. Requests to other endpoints carry no credentials. Otherwise
	// anybody who can name an endpoint could steal this process's token.
}

// publicEndpoint completes an endpoint without a path.
const (
	publicEndpoint = "https://storage.googleapis.com/storage/v1/"
	apiPath        = "/storage/v1/"
)

// endpoint returns the API's URL, which ends with a slash. google reports whether it is one of
// Google's own, which may receive this process's tokens.
func (c Config) endpoint() (base string, google bool, err error) {
	if c.Endpoint == "" {
		return publicEndpoint, true, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The error does not quote the URL: it may hold a password.
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

// isGoogle reports whether a URL is one of Google's own APIs.
func isGoogle(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && u.Port() == "" && (host == "googleapis.com" || strings.HasSuffix(host, ".googleapis.com"))
}

// takesTokensFrom reports whether this process may ask an address for tokens: one of Google's,
// or one on the endpoint's own host, such as an emulator. The writer of a Secret could name
// other addresses, and must not make this process send requests into its network.
func (c Config) takesTokensFrom(address *url.URL) bool {
	if isGoogle(address) {
		return true
	}
	endpoint, err := url.Parse(c.Endpoint)
	return err == nil && address.User == nil && endpoint.Hostname() != "" && strings.EqualFold(endpoint.Hostname(), address.Hostname())
}
