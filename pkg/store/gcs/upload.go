// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	contentType = "application/octet-stream"
	// chunkSize is how much of a large object one request sends, and keeps in memory for a
	// retry.
	chunkSize = 16 << 20
	// cleanupTime bounds the work after the end of an upload, even if its context has ended.
	cleanupTime = 10 * time.Second
)

// Put stores an object: in one request if it fits into a chunk, otherwise in chunks of an
// upload session. The last chunk makes the object visible. Before that, Put sends Google the
// CRC32C of all content, and Google refuses a difference. Put also compares the CRC32C of the
// stored object.
//
// The emulator fake-gcs-server ignores the CRC32C of a session.
func (s *Store) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	object, err := s.put(ctx, key, u)
	if err != nil {
		return store.Object{}, s.failed(ctx, "put", key, err)
	}
	return object, nil
}

func (s *Store) put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	content := newChecked(u.Body)
	first, whole, err := store.FirstPart(content, store.PartSize(-1))
	if err != nil {
		return store.Object{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return store.Object{}, err
	}
	object := &storage.Object{Name: key, ContentType: contentType, Metadata: u.Metadata}
	var stored *storage.Object
	if whole {
		object.Metadata = allMetadata(u)
		stored, err = s.insert(ctx, s.service, object, bytes.NewReader(first), len(first)+1)
	} else {
		stored, err = s.insertInSession(ctx, object, io.MultiReader(bytes.NewReader(first), content))
	}
	if content.err != nil {
		return store.Object{}, content.err // instead of the SDK's error for it
	}
	// The end of ctx no longer stops the work on a stored object.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err != nil {
		if stored = s.afterAll(ctx, object, content, err); stored == nil {
			return store.Object{}, err
		}
	}
	if err := content.compare(stored); err != nil {
		return store.Object{}, s.takeBack(ctx, stored, err)
	}
	if !whole && u.FinalMetadata != nil {
		if err := s.addMetadata(ctx, stored, allMetadata(u)); err != nil {
			return store.Object{}, err
		}
	}
	return toObject(stored)
}

// insert stores content as an object. Content shorter than a chunk takes one request, which
// may be retried.
func (s *Store) insert(ctx context.Context, service *storage.Service, object *storage.Object, content io.Reader, chunk int) (*storage.Object, error) {
	stored, err := service.Objects.Insert(s.bucket, object).Context(ctx).
		WithRetry(backoff(), retried(ctx)).
		Media(content, googleapi.ChunkSize(chunk), googleapi.EnableAutoChecksum()).Do()
	if err != nil {
		return nil, explain(ctx, err)
	}
	return stored, nil
}

// insertInSession stores long content as an object, and cancels the session after a failure.
func (s *Store) insertInSession(ctx context.Context, object *storage.Object, content io.Reader) (*storage.Object, error) {
	session := &session{base: s.requests}
	service, err := s.serviceOver(ctx, session)
	if err != nil {
		return nil, err
	}
	stored, err := s.insert(ctx, service, object, content, chunkSize)
	if err != nil {
		session.end(ctx)
		return nil, err
	}
	return stored, nil
}

// addMetadata adds the metadata that are known only at the end. If that fails, the backup
// stays without them: Google has it and has proven its content.
func (s *Store) addMetadata(ctx context.Context, stored *storage.Object, all map[string]string) error {
	patch := &storage.Object{Metadata: all}
	call := s.service.Objects.Patch(s.bucket, stored.Name, patch).Generation(stored.Generation).Context(ctx)
	err := try(ctx, func() error {
		_, err := call.Do()
		return err
	})
	switch {
	case err == nil:
		stored.Metadata = all
	case store.HasStatus(explain(ctx, err), http.StatusNotFound):
		return errors.New("somebody has deleted it meanwhile, or put another object in its place: let nobody else write to this name")
	}
	return nil
}

// afterAll is for a lost answer to an upload: it returns the object if it is stored, or nil.
func (s *Store) afterAll(ctx context.Context, object *storage.Object, content *checked, lost error) *storage.Object {
	// A session that has stored its object may be gone when its last chunk is sent again.
	ended := store.HasStatus(lost, http.StatusNotFound) || store.HasStatus(lost, http.StatusGone)
	if !content.ended || refused(lost) && !ended {
		return nil
	}
	call := s.service.Objects.Get(s.bucket, object.Name).Context(ctx)
	var there *storage.Object
	err := try(ctx, func() (err error) {
		there, err = call.Do()
		return err
	})
	if err != nil || content.compare(there) != nil || !maps.Equal(there.Metadata, object.Metadata) {
		return nil // or it is an older one
	}
	return there
}

// takeBack deletes the object that an upload has stored, and never another writer's newer one.
// It returns why, with its own errors.
func (s *Store) takeBack(ctx context.Context, stored *storage.Object, why error) error {
	call := s.service.Objects.Delete(s.bucket, stored.Name).Generation(stored.Generation).Context(ctx)
	err := try(ctx, func() error { return call.Do() })
	if err == nil {
		return why
	}
	if err = explain(ctx, err); store.HasStatus(err, http.StatusNotFound) {
		return why
	}
	return fmt.Errorf("%w; %w; delete it, which is there but not to be trusted: %w", why, store.ErrLeft, err)
}

func allMetadata(u store.Upload) map[string]string {
	all := maps.Clone(u.Metadata)
	if u.FinalMetadata == nil {
		return all
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, u.FinalMetadata())
	return all
}

// checked is content that computes its checksum and length while it is read.
type checked struct {
	body io.Reader
	size int64
	sum  uint32

	ended bool  // the whole content was read
	err   error // the body's error
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newChecked(body io.Reader) *checked { return &checked{body: body} }

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.size += int64(n)
	c.sum = crc32.Update(c.sum, castagnoli, p[:n])
	switch {
	case err == io.EOF:
		c.ended = true
	case err != nil:
		c.err = err
	}
	return n, err
}

// compare returns an error if the store has other content.
func (c *checked) compare(stored *storage.Object) error {
	if stored.Size != uint64(c.size) {
		return fmt.Errorf("%d bytes were sent and %d stored", c.size, stored.Size)
	}
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, c.sum))
	if stored.Crc32c != sum {
		return fmt.Errorf("the content that was stored has the CRC32C %s, and that sent %s", store.Excerpt(stored.Crc32c), sum)
	}
	return nil
}
