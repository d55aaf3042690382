// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// segments lists those of all clusters.
func segments(ctx context.Context, place *location.Location) iter.Seq2[changelog.Key, error] {
	return segmentsBelow(ctx, place, changelog.KeyPrefix(place.Key))
}

// segmentsBelow lists those whose keys begin with a prefix.
func segmentsBelow(ctx context.Context, place *location.Location, prefix string) iter.Seq2[changelog.Key, error] {
	return func(yield func(changelog.Key, error) bool) {
		for object, err := range listed(ctx, place, prefix) {
			k, ours := changelog.ParseKey(place.Key, object.Key)
			if (err != nil || ours) && (!yield(k, err) || err != nil) {
				return
			}
		}
	}
}

// segmentsNear lists those of a cluster that begin between two revisions or near them. A segment has few
// revisions: they are limited by its size and by the time that it takes.
func segmentsNear(ctx context.Context, place *location.Location, cluster uint64, from, to int64) iter.Seq2[changelog.Key, error] {
	return func(yield func(changelog.Key, error) bool) {
		for _, prefix := range changelog.Prefixes(place.Key, cluster, from-nearBefore, to+nearAfter) {
			for k, err := range segmentsBelow(ctx, place, prefix) {
				if !yield(k, err) || err != nil {
					return
				}
			}
		}
	}
}

// listed lists objects. It gives up on a store that delivers none of them for storeLimit: its answer may have
// begun, so that no other limit ends it. The time that the caller takes does not count.
func listed(ctx context.Context, place *location.Location, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stalled := fmt.Errorf("the store has not continued its list for %s", storeLimit)
		watch := time.AfterFunc(storeLimit, func() { cancel(stalled) })
		defer watch.Stop()
		for object, err := range place.List(ctx, prefix) {
			watch.Stop()
			if err != nil && errors.Is(context.Cause(ctx), stalled) {
				err = stalled
			}
			if !yield(object, err) || err != nil {
				return
			}
			watch.Reset(storeLimit)
		}
	}
}

func readSegment(ctx context.Context, place *location.Location, key changelog.Key) (*changelog.Segment, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	body, err := place.Get(ctx, key.Text, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, changelog.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s broke off: %w", place.Path(key.Text), err)
	}
	s, err := changelog.Decode(text)
	if err == nil && !key.Fits(s) {
		err = fmt.Errorf("%w: it is another one than its key says", changelog.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place.Path(key.Text), err)
	}
	return s, nil
}
