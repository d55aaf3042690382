// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/environment"
)

// On a new node, the metadata server starts when the operator already needs it.
func TestAMetadataServerThatStartsLaterIsFound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodToken)
	}))
	t.Cleanup(server.Close)
	environment.Forget(t, "GOOGLE_", "GCE_")
	t.Setenv("HOME", t.TempDir())
	there := false
	a := &ambient{client: http.DefaultClient, inGoogle: func(context.Context) bool { return there }}
	if token, err := a.Token(t.Context()); !errors.Is(err, store.ErrNoCredentials) {
		t.Fatalf("token %v, error %v", token, err)
	}
	there = true
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	if token, err := a.Token(t.Context()); err != nil || token.Value != "good" {
		t.Errorf("token %v, error %v", token, err)
	}
}
