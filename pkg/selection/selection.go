// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection finds the backup that a restore asks for, and reads the whole of
// it, so that nothing is touched for the sake of one that is damaged. What decides
// which backup comes first is pure.
package selection

import (
	"context"
	"errors"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// ErrDamaged tells that the backup is not what was once stored, or no snapshot of etcd
// at all. Reading it again won't help: it takes another one. All other errors may pass
// by themselves, or when somebody has mended what they tell of; those of package store
// are found by errors.Is.
var ErrDamaged = errors.New("the backup is damaged")

// Verified is a backup that was read from its beginning to its end, and is whole.
type Verified struct {
	// Key in the store; Path is the bucket and the key, as in the path of a spec.
	Key, Path string
	// Size in bytes, and SHA-256 of the whole in hexadecimal.
	Size   int64
	SHA256 string
	// EtcdVersion that it was taken from, such as 3.6.16, and the revision of the
	// data; "" and 0 where the store doesn't tell.
	EtcdVersion  string
	EtcdRevision int64
	// Taken is when it was begun; zero where the store doesn't tell.
	Taken time.Time
	// Modified is when the store got it, by which one that replaces it is noticed;
	// zero where the store doesn't tell.
	Modified time.Time
	// Uncertain tells that etcd had no quorum then: writes may be missing in it.
	Uncertain bool
}

// Find chooses the backup that the spec asks for, and reads all of it. It also tells
// which newer ones were passed over, and why. The error is ErrDamaged, wraps
// store.ErrNotFound where there is no such backup, or is that of the store.
//
// progress is told how many of an object's bytes have been read; it must return soon,
// and may be nil.
func Find(ctx context.Context, place *location.Location, spec *api.RestoreSpec, progress func(key string, read, size int64)) (Verified, []string, error) {
	f := finder{place: place, progress: progress}
	if spec.Newest() {
		var before time.Time
		if spec.Before != nil {
			before = spec.Before.Time
		}
		return f.newest(ctx, before)
	}
	v, err := f.exact(ctx, place.Key)
	return v, nil, err
}
