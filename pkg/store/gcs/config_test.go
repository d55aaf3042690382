// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func TestEndpointsAreThoseOfTheAPI(t *testing.T) {
	for _, tt := range []struct {
		endpoint, base string
		google         bool
	}{
		{"", "https://storage.googleapis.com/storage/v1/", true},
		{"https://storage.googleapis.com", "https://storage.googleapis.com/storage/v1/", true},
		{"https://storage-private.p.googleapis.com/storage/v1/", "https://storage-private.p.googleapis.com/storage/v1/", true},
		{"http://storage.googleapis.com", "http://storage.googleapis.com/storage/v1/", false},
		{"https://storage.googleapis.com:4443", "https://storage.googleapis.com:4443/storage/v1/", false},
		{"https://googleapis.com.example.com", "https://googleapis.com.example.com/storage/v1/", false},
		{"https://evilgoogleapis.com", "https://evilgoogleapis.com/storage/v1/", false},
		{"http://fake:4443", "http://fake:4443/storage/v1/", false},
		{"http://fake:4443/", "http://fake:4443/storage/v1/", false},
		{"http://fake:4443/storage/v1", "http://fake:4443/storage/v1/", false},
		{"http://fake:4443/prefix/storage/v1/", "http://fake:4443/prefix/storage/v1/", false},
	} {
		base, google, err := Config{Endpoint: tt.endpoint}.endpoint()
		if err != nil || base != tt.base || google != tt.google {
			t.Errorf("%q: base %q, google %v, error %v; want %q, %v", tt.endpoint, base, google, err, tt.base, tt.google)
		}
	}
}

func TestWrongConfigurationIsTold(t *testing.T) {
	const secret = "hunter2"
	for name, tt := range map[string]struct {
		config Config
		names  string // what the error must name
	}{
		"no bucket":                 {Config{}, "bucket"},
		"no URL":                    {Config{Bucket: "b", Endpoint: "fake:4443"}, "endpoint"},
		"password in the URL":       {Config{Bucket: "b", Endpoint: "http://me:hunter2@fake"}, "endpoint"},
		"query in the URL":          {Config{Bucket: "b", Endpoint: "http://fake/?token=hunter2"}, "endpoint"},
		"token and file":            {Config{Bucket: "b", AccessToken: secret, CredentialsJSON: []byte(secret)}, "access-token"},
		"blank token":               {Config{Bucket: "b", AccessToken: " \n"}, "access-token"},
		"token of two lines":        {Config{Bucket: "b", AccessToken: "hunter2\nhunter2"}, "access-token"},
		"no JSON":                   {Config{Bucket: "b", CredentialsJSON: []byte(secret)}, "credentials.json"},
		"cut JSON":                  {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"service_account","private_key":"hunter2`)}, "credentials.json"},
		"number for a text":         {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"service_account","client_email":2}`)}, "credentials.json"},
		"no type":                   {Config{Bucket: "b", CredentialsJSON: []byte(`{"private_key":"hunter2"}`)}, "type"},
		"unknown type":              {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"hunter2"}`)}, "service_account"},
		"runs a program":            {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"external_account","credential_source":{"executable":{"command":"/bin/hunter2"}}}`)}, "external_account"},
		"of a workforce":            {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"external_account_authorized_user","client_secret":"hunter2"}`)}, "external_account_authorized_user"},
		"impersonation":             {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"impersonated_service_account","service_account_impersonation_url":"http://hunter2"}`)}, "impersonated_service_account"},
		"reads a file":              {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"gdch_service_account","ca_cert_path":"/hunter2"}`)}, "gdch_service_account"},
		"key that is none":          {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"service_account","client_email":"a@b","private_key":"hunter2"}`)}, "private_key"},
		"address of tokens is none": {Config{Bucket: "b", CredentialsJSON: keyFile(t, "file:///hunter2")}, "token_uri"},
		"user without a token":      {Config{Bucket: "b", CredentialsJSON: []byte(`{"type":"authorized_user","client_id":"1","client_secret":"hunter2"}`)}, "refresh_token"},
	} {
		opened, err := Open(t.Context(), tt.config)
		if !errors.Is(err, store.ErrConfig) {
			t.Errorf("%s: opened %v, error %v, want %v", name, opened, err, store.ErrConfig)
			continue
		}
		if !strings.Contains(err.Error(), tt.names) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error must name %s and no secret: %v", name, tt.names, err)
		}
	}
}
