// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store defines where backups are kept: objects under keys, in a bucket, a container
// or a directory. The packages below it are the stores. storetest tests them all against this
// contract.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store is one bucket, container or directory. Its methods must be safe for concurrent use.
// Their errors must say what was tried on which bucket and key, and what the store answered.
// Errors must never hold credentials.
type Store interface {
	// Put stores an object, and replaces one that has the key already. The object must become
	// visible only when it is complete. Put must succeed only after the store has confirmed
	// the content, by its answers to the upload or to a later request, even if ctx has ended
	// meanwhile.
	//
	// After an error, Put must remove what it has sent, even if ctx has ended, and nothing of
	// it may be visible. There are two exceptions. If the store is unreachable or refuses the
	// removal, the error must be ErrLeft. If the store has the object and proves nothing about
	// its content, the object stays.
	//
	// Put must never delete a complete object that may be good: only one whose content differs
	// by the store's own answer. Nor may it delete an object that another writer has put under
	// the key meanwhile, which is an error.
	//
	// The memory that Put takes must not grow with the object.
	Put(ctx context.Context, key string, u Upload) (Object, error)

	// Get reads an object from an offset in bytes on, which must not be behind its end. The
	// caller must close the reader. The error is ErrNotFound for an absent object.
	Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error)

	// Stat returns an object's properties and metadata. The error is ErrNotFound for an absent
	// object.
	Stat(ctx context.Context, key string) (Object, error)

	// List yields all objects whose keys begin with the prefix, in any order. After an error
	// it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]

	// Delete deletes an object. An absent object is no error.
	Delete(ctx context.Context, key string) error

	// Sweep removes the remains of uploads that were interrupted, for example by the end of
	// the process. It only removes those that began before a time, under keys for which mine
	// is true. All of these keys begin with the prefix. It returns the number of such uploads.
	// It does nothing if the store itself removes them.
	Sweep(ctx context.Context, prefix string, before time.Time, mine func(key string) bool) (int, error)

	// Close closes connections. No other method may be running.
	Close() error
}

// Upload is an object to store.
type Upload struct {
	// Body is the content, which Put reads once and to its end. An error other than io.EOF
	// ends the upload, and the error of Put wraps it.
	Body io.Reader

	// Size of the content in bytes; -1: unknown. A store may choose the sizes of parts by it.
	// The content may turn out longer or shorter.
	Size int64

	// Metadata are stored with the object. Keys are lowercase letters and dashes, values
	// printable ASCII.
	Metadata map[string]string

	// FinalMetadata returns metadata that are known only after the end of Body; nil: there are
	// none. Put calls it then. Volumes and ABS always store them. GCS does if the request that
	// adds them to a large object succeeds. S3 and OSS do if one request can send the object.
	FinalMetadata func() map[string]string
}

// Object is a stored object.
type Object struct {
	// Key is its complete key, without the bucket.
	Key  string
	Size int64 // in bytes
	// Modified is when it became visible.
	Modified time.Time
	// Metadata as given to Put. List may leave them out.
	Metadata map[string]string
}

// Kinds of errors that need an action, each a different one; errors.Is finds them.
var (
	// ErrNotFound: there is no object with the key.
	ErrNotFound = errors.New("there is no such object")
	// ErrNoBucket: the bucket, container or directory does not exist.
	ErrNoBucket = errors.New("there is no such bucket")
	// ErrDenied: the store has answered that the credentials are wrong, or do not allow the
	// request.
	ErrDenied = errors.New("the store refused the credentials or what they may do")
	// ErrFull: the store has no room for the object.
	ErrFull = errors.New("there is no room for it")
	// ErrNoCredentials: the process obtained no credentials, which may pass. The store was not
	// asked.
	ErrNoCredentials = errors.New("no credentials for the store")
	// ErrLeft: an upload failed, and its remains could not be removed. The object under its
	// key must not be trusted.
	ErrLeft = errors.New("what had been sent could not be removed")
	// ErrConfig: the configuration is not usable; nothing was sent.
	ErrConfig = errors.New("wrong configuration")
)
