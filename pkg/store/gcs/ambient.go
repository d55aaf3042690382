// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/compute/metadata"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// ambient is the identity of this process. It is searched on first use, since that may send
// requests.
type ambient struct {
	client *http.Client
	// inGoogle reports whether Google's metadata server is there; nil: ask for it.
	inGoogle func(context.Context) bool

	mu    sync.Mutex
	found *auth.Credentials
}

func (a *ambient) Token(ctx context.Context) (*auth.Token, error) {
	found, err := a.find(ctx)
	if err != nil {
		return nil, err
	}
	return found.Token(ctx)
}

func (a *ambient) find(ctx context.Context) (*auth.Credentials, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found != nil {
		return a.found, nil
	}
	// The SDK looks for the metadata server once in the life of the process. On a new node, that server
	// and DNS may start later than this process.
	if !hasFile() && !a.isInGoogle(ctx) {
		return nil, noIdentity("there is neither a file of credentials nor Google's metadata server")
	}
	found, err := credentials.DetectDefault(&credentials.DetectOptions{
		Scopes:              []string{scope},
		Client:              a.client,
		DisableAsyncRefresh: true,
	})
	if err != nil {
		return nil, noIdentity(store.Excerpt(err.Error()))
	}
	a.found = found
	return found, nil
}

func noIdentity(why string) error {
	return fmt.Errorf("%w: no Secret gives credentials, and the process has none of its own: name a Secret, "+
		"or give the pod's service account an identity: %s", store.ErrNoCredentials, why)
}

// hasFile reports whether the SDK takes the credentials from a file.
func hasFile() bool {
	if os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(home, ".config", "gcloud", "application_default_credentials.json"))
	return err == nil
}

func (a *ambient) isInGoogle(ctx context.Context) bool {
	if a.inGoogle != nil {
		return a.inGoogle(ctx)
	}
	return metadata.NewWithOptions(&metadata.Options{UseDefaultClient: true}).OnGCEWithContext(ctx)
}
