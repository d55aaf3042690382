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
)

// segments lists those of all clusters. It gives up on a store that delivers none of them for
// storeLimit: its answer may have begun, so that no other limit ends it.
func segments(ctx context.Context, place *location.Location) iter.Seq2[changelog.Key, error] {
	return func(yield func(changelog.Key, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stalled := fmt.Errorf("the store has not continued its list for %s", storeLimit)
		watch := time.AfterFunc(storeLimit, func() { cancel(stalled) })
		defer watch.Stop()
		for object, err := range place.List(ctx, changelog.KeyPrefix(place.Key)) {
			if err != nil && errors.Is(context.Cause(ctx), stalled) {
				err = stalled
			}
			k, ours := changelog.ParseKey(place.Key, object.Key)
			if (err != nil || ours) && (!yield(k, err) || err != nil) {
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
