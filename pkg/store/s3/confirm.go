// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// stored is an object that the store was asked to make visible.
type stored struct {
	key  string
	size int64
	// crc is the expected one of an upload that has CRC32Cs; empty: it has MD5s, and etag is the
	// expected one if ETags are MD5s.
	crc crc
	// whole is the CRC32C of all content, which some stores state instead (Ceph 20).
	whole    crc
	etag     etag
	metadata map[string]string
	// answered is the store's answer to the completion.
	answered tag
	// proven: the store has confirmed the content of all parts.
	proven bool
}

// isProven reports whether the store has already confirmed the content.
func (w stored) isProven() bool { return w.proven || w.is(w.answered) }

// is reports whether the store states the sum of what was sent.
func (w stored) is(now tag) bool {
	if w.crc != "" {
		return now.crc == w.crc || now.crc == w.whole || now.crc == w.crc.withoutParts()
	}
	return now.etag == w.etag
}

// check returns an error if the sums show that the store has other content.
func (w stored) check(now tag) error {
	switch {
	case w.is(now):
		return nil
	case w.crc != "":
		return now.crc.check(w.crc)
	case w.proven && now.etag.parts() != "" && now.etag.parts() == w.etag.parts():
		return nil // some stores compute the ETag of an object of parts otherwise
	}
	return now.etag.check(w.etag)
}

// isOurs reports whether the store's object is the one that it made from this upload, good or
// not. Another writer may have replaced it since.
func (w stored) isOurs(now tag) bool {
	return now.raw == "" || now.raw == w.answered.raw || w.is(now)
}

// compare returns an error if the store's object differs from what was sent.
func (w stored) compare(object store.Object, now tag) error {
	if object.Size != w.size {
		return fmt.Errorf("what the store has kept has %d bytes, and %d were sent", object.Size, w.size)
	}
	return w.check(now)
}

// confirm asks the store for the object, after a request to make it visible that was answered
// with err. The end of ctx no longer matters.
//
// confirm only deletes an object that differs by the store's own answer. An object that can't
// be checked may be good, and a newer one is another writer's.
//
// A lost answer is a success if the sent content is there. If the store states no sum, nobody
// can know, and confirm leaves the object alone: it may be the one that was to be replaced.
func (s *Store) confirm(ctx context.Context, want stored, err error) (store.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	object, now, unseen := s.head(ctx, want.key, want.crc != "")
	if err != nil {
		if unseen == nil && object.Size == want.size && want.is(now) {
			return object, nil // only the answer was lost
		}
		return store.Object{}, err // and the object is not ours
	}
	wrong := want.check(want.answered)
	switch {
	case errors.Is(unseen, store.ErrNotFound):
		return store.Object{}, errors.New("the store said that it has it, and has nothing now: somebody has deleted it")
	case unseen != nil && wrong != nil:
	case unseen != nil && want.isProven():
		return store.Object{Key: want.key, Size: want.size, Modified: time.Now(), Metadata: want.metadata}, nil
	case unseen != nil:
		return store.Object{}, fmt.Errorf("stored, but not confirmed: ask what the store has kept: %w", unseen)
	case want.answered.raw != "" && !want.isOurs(now):
		return store.Object{}, errReplaced
	default:
		if wrong = want.compare(object, now); wrong == nil {
			return object, nil
		}
		if !want.isOurs(now) {
			return store.Object{}, errReplaced
		}
	}
	return store.Object{}, s.takeBack(ctx, want, now, wrong)
}

var errReplaced = errors.New("another object has taken its place meanwhile: let nobody else write to this key")

// takeBack deletes an object that the store has made with other content, and never another
// one. It returns why, with its own errors.
func (s *Store) takeBack(ctx context.Context, want stored, now tag, why error) error {
	input := &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &want.key}
	if only := cmp.Or(now.raw, want.answered.raw); only != "" {
		only = `"` + only + `"`
		input.IfMatch = &only
	}
	_, err := s.client.DeleteObject(ctx, input)
	if statusOf(err) == http.StatusNotImplemented && input.IfMatch != nil {
		// Not all stores support conditions. The object was there a moment ago.
		input.IfMatch = nil
		_, err = s.client.DeleteObject(ctx, input)
	}
	if statusOf(err) == http.StatusPreconditionFailed {
		return fmt.Errorf("%w; and another object has taken its place meanwhile", why)
	}
	if err = explain(err); errors.Is(err, store.ErrNotFound) {
		return why
	}
	return leftover(why, err)
}
