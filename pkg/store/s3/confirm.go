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
	key      string
	size     int64
	etag     etag // what it must be where ETags are MD5s
	metadata map[string]string
	// answered is what the store has told when it had made it.
	answered tag
	// proven: the store has told of all parts that they are what was sent.
	proven bool
}

// isProven tells whether the store has said that it has what was sent, without
// being asked again.
func (w stored) isProven() bool { return w.proven || w.answered.etag == w.etag }

// isOurs tells whether what the store has now is the object that it has made of what
// was sent, be it good or not. Under the same key there may be another's since.
func (w stored) isOurs(now tag) bool {
	return now.raw == "" || now.raw == w.answered.raw || now.etag == w.etag
}

// compare tells how what the store has now is not what was sent.
func (w stored) compare(object store.Object, now tag) error {
	if object.Size != w.size {
		return fmt.Errorf("what the store has kept has %d bytes, and %d were sent", object.Size, w.size)
	}
	return now.etag.check(w.etag)
}

// confirm asks the store what it has now, when it was asked to make an object
// visible and answered with err. That ctx has ended meanwhile does not matter any
// more.
//
// Only an object is deleted that the store itself says is not what was sent: one
// that can't be looked at may well be good, and another one is another's.
//
// An answer that was lost, and what was sent is there: that is a success. Where
// ETags are no MD5s that can't be told, and what is there is left alone: it may be
// the object that was to be replaced.
func (s *Store) confirm(ctx context.Context, want stored, err error) (store.Object, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	object, now, unseen := s.head(ctx, want.key)
	if err != nil {
		if unseen == nil && object.Size == want.size && now.etag == want.etag {
			return object, nil // the answer was lost
		}
		return store.Object{}, err // and what there is, is not ours
	}
	wrong := want.answered.etag.check(want.etag)
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

// takeBack deletes an object that the store has made otherwise than it was sent, and
// no other one. It returns why, and what came in between.
func (s *Store) takeBack(ctx context.Context, want stored, now tag, why error) error {
	input := &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &want.key}
	if only := cmp.Or(now.raw, want.answered.raw); only != "" {
		only = `"` + only + `"`
		input.IfMatch = &only
	}
	_, err := s.client.DeleteObject(ctx, input)
	if statusOf(err) == http.StatusNotImplemented && input.IfMatch != nil {
		// Not all stores know conditions. It was there a moment ago.
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
