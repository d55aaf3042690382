// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// GoogleServiceAccount starts a server that gives access tokens to one service account, like
// Google's, and returns the account's key file. The tokens do not matter: FakeGCS accepts any.
func GoogleServiceAccount(t testing.TB, options Options) (credentialsJSON []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ip := options.IP
	if ip == "" {
		ip = "127.0.0.1"
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || !signedBy(key, r.PostFormValue("assertion")) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`))
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"` + rand.Text() + `","token_type":"Bearer","expires_in":3599}`))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	credentialsJSON, err = json.Marshal(map[string]string{
		"type": "service_account", "project_id": "test",
		"client_email": "etcd-backup@test.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   "http://" + listener.Addr().String() + "/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return credentialsJSON
}

// signedBy reports whether a JWT has a key's signature, by RS256.
func signedBy(key *rsa.PrivateKey, token string) bool {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil {
		return false
	}
	hashed := sha256.Sum256([]byte(token[:i]))
	return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, hashed[:], signature) == nil
}
