// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/environment"
)

// keyFile is one of a service account that asks for tokens at an address.
func keyFile(t *testing.T, tokens string) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "backup@project.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tokenServer gives tokens, or what else a test wants.
func tokenServer(t *testing.T, status int, text string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server
}

// bucketServer takes note of the last request's Authorization.
func bucketServer(t *testing.T) (server *httptest.Server, authorization *string) {
	t.Helper()
	authorization = new(string)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(small))
	}))
	t.Cleanup(server.Close)
	return server, authorization
}

const goodToken = `{"access_token":"good","token_type":"Bearer","expires_in":3600}`

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestRequestsCarryTheTokenOfTheSecret(t *testing.T) {
	tokens := tokenServer(t, http.StatusOK, goodToken)
	bucket, authorization := bucketServer(t)
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"token":           {Config{AccessToken: "mine\n"}, "Bearer mine"},
		"service account": {Config{CredentialsJSON: keyFile(t, tokens.URL)}, "Bearer good"},
	} {
		tt.config.Bucket, tt.config.Endpoint = "b", bucket.URL
		if _, err := open(t, tt.config).Stat(t.Context(), "k"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if *authorization != tt.want {
			t.Errorf("%s: sent %q, want %q", name, *authorization, tt.want)
		}
	}
}

// Whoever may create a backup names the endpoint.
func TestTokensOfTheProcessAreNotSentElsewhere(t *testing.T) {
	tokens := tokenServer(t, http.StatusOK, goodToken)
	bucket, authorization := bucketServer(t)
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, keyFile(t, tokens.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	environment.Forget(t, "GOOGLE_", "GCE_")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	if _, err := open(t, Config{Bucket: "b", Endpoint: bucket.URL}).Stat(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if *authorization != "" {
		t.Errorf("sent %q", *authorization)
	}
	// They are used at all, with Google's own endpoints.
	provider, err := Config{}.tokens(true, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := provider.Token(t.Context()); err != nil || token.Value != "good" {
		t.Errorf("token %v, error %v", token, err)
	}
}

// Whoever may write a Secret could have the operator ask any address of its network.
func TestTokensAreAskedOfGoogleOrTheEndpointsHostOnly(t *testing.T) {
	for _, tt := range []struct {
		endpoint, tokens string
		taken            bool
	}{
		{"", "", true},
		{"", "https://oauth2.googleapis.com/token", true},
		{"", "https://www.googleapis.com/oauth2/v4/token", true},
		{"https://storage-x.p.googleapis.com", "https://oauth2.googleapis.com/token", true},
		{"http://emulator:4443", "https://oauth2.googleapis.com/token", true},
		{"http://emulator:4443", "http://Emulator:8080/token", true},
		{"http://emulator:4443", "http://other:8080/token", false},
		{"http://emulator:4443", "http://user@emulator:8080/token", false},
		{"", "http://oauth2.googleapis.com/token", false},
		{"", "https://oauth2.googleapis.com:8443/token", false},
		{"", "https://oauth2.googleapis.com.example.com/token", false},
		{"", "https://examplegoogleapis.com/token", false},
		{"", "http://169.254.169.254/latest", false},
		{"", "https://10.0.0.1/token", false},
	} {
		s, err := Open(t.Context(), Config{Bucket: "b", Endpoint: tt.endpoint, CredentialsJSON: keyFile(t, tt.tokens)})
		if err == nil {
			_ = s.Close()
		}
		if tt.taken && err != nil || !tt.taken && (!errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), "token_uri")) {
			t.Errorf("%s with the endpoint %q: %v", tt.tokens, tt.endpoint, err)
		}
	}
}

func TestRefusedKeysAreNoDenialOfTheStore(t *testing.T) {
	bucket, _ := bucketServer(t)
	for name, tt := range map[string]struct {
		status int
		text   string
	}{
		"deleted key":    {http.StatusBadRequest, `{"error":"invalid_grant","error_description":"hunter2"}`},
		"refused":        {http.StatusUnauthorized, `hunter2`},
		"address of all": {http.StatusNotFound, `<html>hunter2</html>`},
	} {
		tokens := tokenServer(t, tt.status, tt.text)
		_, err := open(t, Config{Bucket: "b", Endpoint: bucket.URL, CredentialsJSON: keyFile(t, tokens.URL)}).Stat(t.Context(), "k")
		if !errors.Is(err, store.ErrNoCredentials) || errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "access token") {
			t.Errorf("%s: %v", name, err)
		}
		// The address is named in the Secret: what it answers is not for the status.
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), tokens.URL)) {
			t.Errorf("%s: the error reveals too much: %v", name, err)
		}
	}
}

func TestAServerOfTokensThatIsDownIsNoDenial(t *testing.T) {
	bucket, _ := bucketServer(t)
	tokens := httptest.NewServer(http.NotFoundHandler())
	tokens.Close()
	_, err := open(t, Config{Bucket: "b", Endpoint: bucket.URL, CredentialsJSON: keyFile(t, tokens.URL)}).Stat(t.Context(), "k")
	if err == nil || errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "access token") {
		t.Errorf("stat: %v", err)
	}
}

func TestAProcessWithoutIdentityIsTold(t *testing.T) {
	environment.Forget(t, "GOOGLE_", "GCE_")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
	_, err := open(t, Config{Bucket: "b"}).Stat(t.Context(), "k")
	if !errors.Is(err, store.ErrNoCredentials) || errors.Is(err, store.ErrDenied) {
		t.Errorf("stat: %v, want %v", err, store.ErrNoCredentials)
	}
}
