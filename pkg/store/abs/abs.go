// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package abs keeps backups in Azure Blob Storage, as block blobs.
package abs

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Store is a container.
type Store struct {
	name    string // for errors
	network *http.Transport
	client  *container.Client

	// pageSize of lists; 0: the service's, 5,000.
	pageSize int32
}

// retries of a request after a passing error.
const retries = 3

var _ store.Store = (*Store)(nil)

// Open opens a container. It sends nothing: the first request shows whether the container
// exists and allows access.
func Open(_ context.Context, c Config) (*Store, error) {
	failed := func(err error) error {
		return fmt.Errorf("open container %q of Azure Blob Storage: %w", c.Container, err)
	}
	p, err := c.place()
	if err != nil {
		return nil, failed(err)
	}
	s := &Store{
		name:    fmt.Sprintf("container %s of storage account %s of Azure Blob Storage", c.Container, p.account),
		network: store.Transport(),
	}
	// The API sends no redirects, and credentials must not follow one.
	client := &http.Client{
		Transport:     store.Exclusive{RoundTripper: s.network}, // Put reuses a block's buffer
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if s.client, err = p.client(c.Container, client); err != nil {
		return nil, failed(err)
	}
	return s, nil
}

func (p place) client(name string, requests policy.Transporter) (*container.Client, error) {
	options := policy.ClientOptions{
		Cloud:     p.cloud.login,
		Transport: requests,
		Retry:     policy.RetryOptions{MaxRetries: retries, RetryDelay: 250 * time.Millisecond, MaxRetryDelay: 4 * time.Second},
		Telemetry: policy.TelemetryOptions{ApplicationID: "etcd-operator"},
	}
	address := p.service + "/" + name
	if p.key != "" {
		key, err := container.NewSharedKeyCredential(p.account, p.key)
		if err != nil {
			return nil, fmt.Errorf("%w: storage-key is not a key of a storage account", store.ErrConfig)
		}
		return container.NewClientWithSharedKeyCredential(address, key, &container.ClientOptions{ClientOptions: options})
	}
	own, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
	if err != nil {
		return nil, fmt.Errorf("%w: storage-key is missing, and the operator's pod has no identity: %s", store.ErrNoCredentials, store.Excerpt(err.Error()))
	}
	return container.NewClient(address, identity{own}, &container.ClientOptions{ClientOptions: options})
}

// Get reads a blob. After a broken connection, it continues with the same blob at the same
// offset.
func (s *Store) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	answer, err := s.client.NewBlobClient(key).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset}})
	if err == nil {
		return reader{ctx, answer.NewRetryReader(ctx, &blob.RetryReaderOptions{MaxRetries: retries})}, nil
	}
	err = explain(ctx, err)
	if store.HasStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		// There is nothing behind the last byte, which is not a valid range in HTTP.
		if object, statErr := s.Stat(ctx, key); statErr == nil && object.Size == offset {
			return http.NoBody, nil
		}
	}
	return nil, s.failed("get", key, err)
}

// reader explains errors of reads too.
type reader struct {
	ctx  context.Context
	body io.ReadCloser
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader's end is never wrapped
		err = explain(r.ctx, err)
	}
	return n, err
}

func (r reader) Close() error { return r.body.Close() }

// Stat returns a blob's properties.
func (s *Store) Stat(ctx context.Context, key string) (store.Object, error) {
	p, err := s.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return store.Object{}, s.failed("stat", key, explain(ctx, err))
	}
	return object(key, p), nil
}

func object(key string, p blob.GetPropertiesResponse) store.Object {
	o := store.Object{Key: key, Size: value(p.ContentLength), Modified: value(p.LastModified), Metadata: map[string]string{}}
	for name, v := range p.Metadata {
		o.Metadata[metadataKey(name)] = value(v)
	}
	return o
}

// List lists blobs, without their metadata. It leaves out blobs whose blocks were not
// committed.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		options := &container.ListBlobsFlatOptions{Prefix: &prefix}
		if s.pageSize > 0 {
			options.MaxResults = &s.pageSize
		}
		pages := s.client.NewListBlobsFlatPager(options)
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(store.Object{}, s.failed("list", prefix, explain(ctx, err)))
				return
			}
			if page.Segment == nil {
				continue
			}
			for _, item := range page.Segment.BlobItems {
				object := store.Object{Key: value(item.Name)}
				if item.Properties != nil {
					object.Size, object.Modified = value(item.Properties.ContentLength), value(item.Properties.LastModified)
				}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Delete deletes a blob with its snapshots: Azure refuses to keep those.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.NewBlobClient(key).Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	if err == nil {
		return nil
	}
	if err = explain(ctx, err); isNotFound(err) {
		return nil
	}
	return s.failed("delete", key, err)
}

// Sweep does nothing: Azure removes uncommitted blocks within a week, or at the next write of
// the same blob.
func (s *Store) Sweep(context.Context, string, time.Time, func(string) bool) (int, error) {
	return 0, nil
}

// Close closes the connections.
func (s *Store) Close() error {
	s.network.CloseIdleConnections()
	return nil
}

// failed adds what was tried, and on what.
func (s *Store) failed(what, key string, err error) error {
	return fmt.Errorf("%s %s in %s: %w", what, key, s.name, err)
}

// metadataName returns an identifier of C#, as Azure requires: it has no dashes. Azure returns
// names in any case.
func metadataName(key string) string { return strings.ReplaceAll(key, "-", "_") }
func metadataKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
