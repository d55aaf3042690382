// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gcs keeps backups in Google Cloud Storage, by its JSON API.
package gcs

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Store is a bucket.
type Store struct {
	bucket   string
	endpoint string
	network  *http.Transport
	requests http.RoundTripper // over network, with tokens
	service  *storage.Service

	// pageSize of lists; 0: the service's, 1,000.
	pageSize int64
}

var _ store.Store = (*Store)(nil)

// Open opens a bucket. It sends nothing: the first request shows whether the bucket exists and
// allows access.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Bucket == "" {
		return nil, fmt.Errorf("open a bucket of Google Cloud Storage: %w: no bucket is named", store.ErrConfig)
	}
	endpoint, google, err := c.endpoint()
	if err != nil {
		return nil, fmt.Errorf("open bucket %s of Google Cloud Storage: %w", c.Bucket, err)
	}
	s := &Store{bucket: c.Bucket, endpoint: endpoint, network: store.Transport()}
	s.requests = s.network
	tokens, err := c.tokens(google, &http.Client{Transport: s.network, CheckRedirect: noRedirects})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s of Google Cloud Storage: %w", c.Bucket, err)
	}
	if tokens != nil {
		s.requests = authorizer{tokens: tokens, base: s.network}
	}
	if s.service, err = s.serviceOver(ctx, s.requests); err != nil {
		return nil, fmt.Errorf("open bucket %s of Google Cloud Storage: %w", c.Bucket, err)
	}
	return s, nil
}

// serviceOver returns a service that sends requests by a RoundTripper.
func (s *Store) serviceOver(ctx context.Context, requests http.RoundTripper) (*storage.Service, error) {
	return storage.NewService(ctx,
		option.WithHTTPClient(&http.Client{Transport: requests, CheckRedirect: noRedirects}),
		option.WithEndpoint(s.endpoint),
		option.WithUserAgent("etcd-operator"))
}

// Get reads an object.
func (s *Store) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	call := s.service.Objects.Get(s.bucket, key).Context(ctx)
	if offset > 0 {
		call.Header().Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	var answer *http.Response
	err := try(ctx, func() (err error) {
		answer, err = call.Download() //nolint:bodyclose // the caller closes it
		return err
	})
	if err == nil {
		return answer.Body, nil
	}
	err = explain(ctx, err)
	if store.HasStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		// There is nothing behind the last byte, which is not a valid range in HTTP.
		if object, statErr := s.Stat(ctx, key); statErr == nil && object.Size == offset {
			return http.NoBody, nil
		}
	}
	return nil, s.failed(ctx, "get", key, err)
}

// Stat returns an object's properties.
func (s *Store) Stat(ctx context.Context, key string) (store.Object, error) {
	call := s.service.Objects.Get(s.bucket, key).Context(ctx)
	var object *storage.Object
	err := try(ctx, func() (err error) {
		object, err = call.Do()
		return err
	})
	if err != nil {
		return store.Object{}, s.failed(ctx, "stat", key, explain(ctx, err))
	}
	told, err := toObject(object)
	if err != nil {
		return store.Object{}, s.failed(ctx, "stat", key, err)
	}
	return told, nil
}

// List lists objects, without their metadata.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for token, more := "", true; more; more = token != "" {
			call := s.service.Objects.List(s.bucket).Context(ctx).Prefix(prefix).PageToken(token).
				Fields("nextPageToken", "items(name,size,timeCreated)")
			if s.pageSize > 0 {
				call.MaxResults(s.pageSize)
			}
			var page *storage.Objects
			err := try(ctx, func() (err error) {
				page, err = call.Do()
				return err
			})
			if err != nil {
				yield(store.Object{}, s.failedList(prefix, explain(ctx, err)))
				return
			}
			for _, item := range page.Items {
				object, err := toObject(item)
				if err != nil {
					yield(store.Object{}, s.failedList(prefix, err))
					return
				}
				if !yield(object, nil) {
					return
				}
			}
			token = page.NextPageToken
		}
	}
}

// Delete deletes an object. If the bucket keeps versions, a noncurrent version stays.
func (s *Store) Delete(ctx context.Context, key string) error {
	call := s.service.Objects.Delete(s.bucket, key).Context(ctx)
	err := try(ctx, func() error { return call.Do() })
	if err == nil {
		return nil
	}
	err = explain(ctx, err)
	if store.HasStatus(err, http.StatusNotFound) && s.bucketIsThere(ctx) == nil {
		return nil
	}
	return s.failed(ctx, "delete", key, err)
}

// Sweep does nothing: Google removes unfinished sessions within a week, and charges nothing
// for them.
func (s *Store) Sweep(context.Context, string, time.Time, func(string) bool) (int, error) {
	return 0, nil
}

// Close closes the connections.
func (s *Store) Close() error {
	s.network.CloseIdleConnections()
	return nil
}

// bucketIsThere asks for the bucket if an answer does not say whether the bucket or the object
// is absent. Its error is store.ErrNoBucket for an absent bucket. It needs no further
// permission.
func (s *Store) bucketIsThere(ctx context.Context) error {
	call := s.service.Objects.List(s.bucket).Context(ctx).MaxResults(1).Fields("nextPageToken")
	err := try(ctx, func() error {
		_, err := call.Do()
		return err
	})
	if err == nil {
		return nil
	}
	err = explain(ctx, err)
	if store.HasStatus(err, http.StatusNotFound) {
		return store.ErrNoBucket
	}
	return err
}

// failed adds what was tried, and on what.
func (s *Store) failed(ctx context.Context, what, key string, err error) error {
	if store.HasStatus(err, http.StatusNotFound) {
		if err = s.bucketIsThere(ctx); err == nil {
			err = store.ErrNotFound
		}
	}
	return fmt.Errorf("%s %s in bucket %s of Google Cloud Storage: %w", what, key, s.bucket, err)
}

func (s *Store) failedList(prefix string, err error) error {
	if store.HasStatus(err, http.StatusNotFound) {
		err = store.ErrNoBucket
	}
	return fmt.Errorf("list %s in bucket %s of Google Cloud Storage: %w", prefix, s.bucket, err)
}

func toObject(o *storage.Object) (store.Object, error) {
	created, err := time.Parse(time.RFC3339, o.TimeCreated)
	if err != nil {
		return store.Object{}, fmt.Errorf("the store does not report when %s was created", o.Name)
	}
	// Later changes, such as of metadata, do not count.
	return store.Object{Key: o.Name, Size: int64(o.Size), Modified: created, Metadata: o.Metadata}, nil
}
