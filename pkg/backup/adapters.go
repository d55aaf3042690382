// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"io"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// Snapshot is a snapshot under way. Its reader returns io.EOF at the end of a
// whole snapshot, and another error if it is not whole.
type Snapshot struct {
	io.ReadCloser
	Revision int64
	Version  string
	Endpoint string // client URL of the member
	// ClusterID is the ID of the etcd cluster; 0: unknown.
	ClusterID uint64
	// RaftApplied is the last raft entry in it at the least; 0: unknown.
	RaftApplied uint64
	// Unapplied is how many entries after that are in it at the most.
	Unapplied uint64
	Size      int64 // in bytes; -1: unknown
	// Linearizable reports whether all writes are in it that were acknowledged before.
	Linearizable bool
	// SHA256 of all bytes, in hexadecimal; "" before the end was read.
	SHA256 func() string
}

// OpenSnapshot begins to take a snapshot of a cluster. It ends with ctx and must
// be closed.
type OpenSnapshot func(ctx context.Context, source snapshot.Source) (*Snapshot, error)

// fromEtcd takes it from a real one.
func fromEtcd(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
	s, err := snapshot.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	return &Snapshot{
		ReadCloser: s, Revision: s.Revision, Version: s.Version, Endpoint: s.Endpoint, Size: s.Size,
		Linearizable: s.Linearizable, SHA256: s.SHA256, ClusterID: s.ClusterID, RaftApplied: s.RaftApplied, Unapplied: s.Unapplied,
	}, nil
}

// OpenLocation opens the place in a store that a spec names. It must be closed.
type OpenLocation func(ctx context.Context, namespace string, spec *api.BackupSpec) (*location.Location, error)

// inStores opens it in a real one.
func inStores(secrets location.Secrets, volumeDir string) OpenLocation {
	return func(ctx context.Context, namespace string, spec *api.BackupSpec) (*location.Location, error) {
		return location.Open(ctx, secrets, namespace, spec.StorageType, spec.BackupSource, volumeDir)
	}
}

// isSpecError reports whether an edit of the spec heals an error, and nothing else.
func isSpecError(err error) bool {
	return errors.Is(err, location.ErrSpec) || errors.Is(err, etcd.ErrEndpoint)
}
