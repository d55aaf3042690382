// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"cloud.google.com/go/auth"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	scope       = "https://www.googleapis.com/auth/devstorage.read_write"
	tokenURL    = "https://oauth2.googleapis.com/token"
	userAuthURL = "https://accounts.google.com/o/oauth2/auth"
)

// file is the relevant fields of a credentials.json.
type file struct {
	Type string `json:"type"`

	// Of a service account.
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	TokenURI     string `json:"token_uri"`

	// Of a user.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// tokens returns the source of the requests' tokens; nil: they carry none. client fetches the
// tokens.
func (c Config) tokens(google bool, client *http.Client) (auth.TokenProvider, error) {
	switch {
	case c.AccessToken != "" && len(c.CredentialsJSON) > 0:
		return nil, fmt.Errorf("%w: there are both access-token and credentials.json: keep only one of them", store.ErrConfig)
	case c.AccessToken != "":
		return accessToken(c.AccessToken)
	case len(c.CredentialsJSON) > 0:
		provider, err := c.fromFile(client)
		if err != nil {
			return nil, err
		}
		return cached(provider), nil
	case google:
		return &ambient{client: client}, nil
	default:
		return nil, nil
	}
}

// cached fetches a new token when the old one expires, within the request that needs it and
// never in a goroutine of its own.
func cached(provider auth.TokenProvider) auth.TokenProvider {
	return auth.NewCachedTokenProvider(provider, &auth.CachedTokenProviderOptions{DisableAsyncRefresh: true})
}

// fixed is a given token.
type fixed struct{ token auth.Token }

func (f fixed) Token(context.Context) (*auth.Token, error) { return &f.token, nil }

func accessToken(text string) (auth.TokenProvider, error) {
	text = strings.TrimSpace(text)
	visible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !visible(r) }) {
		return nil, fmt.Errorf("%w: access-token is no OAuth 2 token: there are spaces or control characters in it, or nothing", store.ErrConfig)
	}
	return fixed{auth.Token{Value: text}}, nil
}

// fromFile makes tokens from a credentials.json. Its errors do not quote the content.
//
// The writer of a Secret is not the owner of this process. So fromFile only accepts kinds that
// hold all they need. The others make this process read files, run programs or call addresses
// of the writer's choice.
func (c Config) fromFile(client *http.Client) (auth.TokenProvider, error) {
	var f file
	if err := json.Unmarshal(c.CredentialsJSON, &f); err != nil {
		return nil, fmt.Errorf("%w: credentials.json is not JSON, or its fields are no text", store.ErrConfig)
	}
	switch f.Type {
	case "service_account":
		return f.serviceAccount(client, c.takesTokensFrom)
	case "authorized_user":
		return f.user(client)
	case "":
		return nil, fmt.Errorf("%w: credentials.json has no field type: it must be the key file of a service account", store.ErrConfig)
	case "external_account", "external_account_authorized_user", "impersonated_service_account", "gdch_service_account":
		return nil, fmt.Errorf("%w: credentials.json of type %s is not taken from a Secret, since it makes the operator read files or ask addresses that the Secret names: "+
			"use the key file of a service account (type service_account), or no Secret and an identity of the operator's pod", store.ErrConfig, f.Type)
	default:
		return nil, fmt.Errorf("%w: credentials.json is of an unknown type: it must be service_account or authorized_user", store.ErrConfig)
	}
}

func (f file) serviceAccount(client *http.Client, trusted func(tokens *url.URL) bool) (auth.TokenProvider, error) {
	if f.ClientEmail == "" || !isPrivateKey(f.PrivateKey) {
		return nil, fmt.Errorf("%w: credentials.json has no client_email, or no private_key in PEM: it must be the key file of a service account as Google made it", store.ErrConfig)
	}
	if f.TokenURI == "" {
		f.TokenURI = tokenURL
	}
	u, err := url.Parse(f.TokenURI)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: token_uri of credentials.json is no URL", store.ErrConfig)
	}
	if !trusted(u) {
		return nil, fmt.Errorf("%w: token_uri of credentials.json is none of Google's, such as %s, nor on the endpoint's host", store.ErrConfig, tokenURL)
	}
	provider, err := auth.New2LOTokenProvider(&auth.Options2LO{
		Email:        f.ClientEmail,
		PrivateKey:   []byte(f.PrivateKey),
		PrivateKeyID: f.PrivateKeyID,
		TokenURL:     f.TokenURI,
		Scopes:       []string{scope},
		Client:       client,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: credentials.json is not a usable key file of a service account", store.ErrConfig)
	}
	return provider, nil
}

func (f file) user(client *http.Client) (auth.TokenProvider, error) {
	if f.ClientID == "" || f.ClientSecret == "" || f.RefreshToken == "" {
		return nil, fmt.Errorf("%w: credentials.json of type authorized_user needs client_id, client_secret and refresh_token", store.ErrConfig)
	}
	provider, err := auth.New3LOTokenProvider(&auth.Options3LO{
		ClientID:     f.ClientID,
		ClientSecret: f.ClientSecret,
		RefreshToken: f.RefreshToken,
		AuthURL:      userAuthURL,
		TokenURL:     tokenURL,
		AuthStyle:    auth.StyleInParams,
		Client:       client,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: credentials.json is not usable as credentials of a user", store.ErrConfig)
	}
	return provider, nil
}

func isPrivateKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
