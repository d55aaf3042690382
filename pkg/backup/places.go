// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"io"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Snapshot is a snapshot under way. Its reader tells io.EOF when it has come to the
// end and is whole, and another error if it is not.
type Snapshot struct {
	io.ReadCloser
	Revision int64
	Version  string
	Endpoint string // client URL of the member
	Size     int64  // in bytes; -1: unknown
	// Linearizable tells whether all writes are in it that were acknowledged before.
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
		Linearizable: s.Linearizable, SHA256: s.SHA256,
	}, nil
}

// Place is where in a store the backups of one EtcdBackup are.
type Place struct {
	store.Store
	// Bucket, or container; for people.
	Bucket string
	// Key of the backup, or what the keys of those on a schedule begin with.
	Key string
}

// OpenPlace opens the place that a spec names. The error is a SpecError where the
// spec itself is to blame, and nothing but an edit will help.
type OpenPlace func(ctx context.Context, namespace string, spec *api.BackupSpec) (*Place, error)

// SpecError is an error that an edit of the spec heals, and nothing else.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }

func (e *SpecError) Unwrap() error { return e.Err }

// name is that of an object for people: bucket and key.
func (p *Place) name(key string) string {
	if p.Bucket == "" {
		return key
	}
	return p.Bucket + "/" + key
}

// noPlace stands for pkg/location until that is there.
func noPlace(context.Context, string, *api.BackupSpec) (*Place, error) {
	return nil, errors.New("this operator was built without stores")
}
