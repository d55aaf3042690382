// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// ambient is the identity of this process. It is searched on first use, since that may send
// requests.
type ambient struct {
	client *http.Client

	mu    sync.Mutex
	found *auth.Credentials
}

func (a *ambient) Token(ctx context.Context) (*auth.Token, error) {
	found, err := a.find()
	if err != nil {
		return nil, err
	}
	return found.Token(ctx)
}

func (a *ambient) find() (*auth.Credentials, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found != nil {
		return a.found, nil
	}
	found, err := credentials.DetectDefault(&credentials.DetectOptions{
		Scopes:              []string{scope},
		Client:              a.client,
		DisableAsyncRefresh: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: no Secret gives credentials, and the process has none of its own: name a Secret, "+
			"or give the pod's service account an identity: %s", store.ErrNoCredentials, store.Excerpt(err.Error()))
	}
	a.found = found
	return found, nil
}
