// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection finds the backup that a restore asks for, and reads all of it, so that a
// restore changes nothing if the backup is damaged. The choice of the order is pure.
package selection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// ErrDamaged means that the backup is not what was stored, or is no snapshot of etcd. Reading
// it again does not help: the restore needs another one. All other errors may pass by
// themselves, or after somebody has fixed their cause. errors.Is finds those of package store.
var ErrDamaged = errors.New("the backup is damaged")

// ErrOutside means that no backup holds the revision that is asked for. The error names the
// nearest ones that can be restored. Reading it again does not help.
var ErrOutside = errors.New("the revision can't be restored")

// Verified is a complete backup that was read from its beginning to its end.
type Verified struct {
	// Key in the store; Path is the bucket and the key, as in the path of a spec.
	Key, Path string
	// Size in bytes, and SHA-256 of the whole in hexadecimal.
	Size   int64
	SHA256 string
	// EtcdVersion is the version of the backed-up cluster, such as 3.6.16, and Revision the
	// data's; "" and 0 if the store does not know them.
	EtcdVersion  string
	EtcdRevision int64
	// Revision is the one to restore; 0: that of the backup.
	Revision int64
	// SnapshotSize is the size of the backup alone, if a log of changes takes it to the
	// Revision; 0: it holds the revision. Size and SHA256 are those of both, one after the
	// other. Segments returns the log by EtcdRevision, Revision and ClusterID.
	SnapshotSize int64
	// ClusterID is the ID of the etcd cluster in hexadecimal digits; "": unknown.
	ClusterID string
	// Taken is when the backup began; zero if the store does not know.
	Taken time.Time
	// Modified is when the store received the object. A change of it shows that another object
	// has replaced this one. Zero if the store does not know.
	Modified time.Time
	// Uncertain means that etcd had no quorum then: the backup may lack writes.
	Uncertain bool
}

// Find chooses the backup that the spec asks for, and reads all of it. It also returns why it
// skipped newer ones. The error is ErrDamaged or ErrOutside, or wraps store.ErrNotFound if there is no such
// backup, or is another error of the store.
//
// Find calls progress with the number of bytes that it has read of an object. progress must
// return soon, and may be nil.
func Find(ctx context.Context, place *location.Location, spec *api.RestoreSpec, progress func(key string, read, size int64)) (Verified, []string, error) {
	f := finder{place: place, revision: spec.Revision, progress: progress}
	if spec.Newest() && spec.ClusterID != "" {
		var err error
		if f.cluster, err = strconv.ParseUint(spec.ClusterID, 16, 64); err != nil {
			return Verified{}, nil, fmt.Errorf("spec.clusterID: %w", err)
		}
	}
	if spec.Newest() && (spec.Revision > 0 || spec.Time != nil) {
		var err error
		if f.log, err = f.readLogs(ctx); err != nil {
			return Verified{}, nil, err
		}
		if spec.Time != nil {
			f.moment = spec.Time.Time
			if f.cluster, f.rival, f.revision, err = f.log.at(ctx, f.moment); err != nil {
				return Verified{}, nil, err
			}
		}
	}
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
