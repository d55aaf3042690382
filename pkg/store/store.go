// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store is where backups are kept: objects under keys, in a bucket, a
// container or a directory. The packages below it are the stores that there are;
// storetest holds all of them to what stands here.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store is one bucket, container or directory. Its methods may be called
// concurrently. Their errors say what was tried on which bucket and key and what
// the store answered, and never hold credentials.
type Store interface {
	// Put stores an object, in place of one that has the key already. It becomes
	// visible when it is whole. Put succeeds when the store has said of it, by its
	// answers while it was sent or when it is looked at, that its content is what
	// was sent; also where ctx has ended meanwhile.
	//
	// After an error, what had been sent is removed, also where ctx has ended, and
	// nothing of it is visible, with these exceptions: the store can't be reached
	// any more, or refuses the removal, which is ErrLeft; or it has said that it has
	// the object, but nothing that proves the content. A whole object that may be
	// good is never removed: only one of which the store says that it is not what was
	// sent. Nor is one that somebody else has put under the key meanwhile, which is
	// an error.
	//
	// What Put holds in memory does not grow with the object.
	Put(ctx context.Context, key string, u Upload) (Object, error)

	// Get reads an object from an offset in bytes on, which must not be behind its
	// end. The reader must be closed. The error is ErrNotFound where there is no
	// such object.
	Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error)

	// Stat tells about an object, with its metadata. The error is ErrNotFound
	// where there is none.
	Stat(ctx context.Context, key string) (Object, error)

	// List yields all objects whose keys begin with the prefix, however many
	// there are, in no particular order. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]

	// Delete deletes an object. One that is not there is no error.
	Delete(ctx context.Context, key string) error

	// Sweep removes what uploads have left that were begun before a time and cut
	// off, such as by the end of the process, under keys of which mine is true;
	// all of them begin with the prefix. It tells how many uploads that were. It
	// does nothing where the store itself removes them.
	Sweep(ctx context.Context, prefix string, before time.Time, mine func(key string) bool) (int, error)

	// Close gives back connections. No other method may be under way.
	Close() error
}

// Upload is an object to be stored.
type Upload struct {
	// Body is the content, read once and to its end. An error of it other than
	// io.EOF is the end of the upload, and wrapped by the error of Put.
	Body io.Reader

	// Size of the content in bytes, or -1 where it is unknown. A store may choose
	// the sizes of parts by it; the content may turn out to be longer or shorter.
	Size int64

	// Metadata are kept with the object. Keys are lowercase letters and dashes,
	// values printable ASCII.
	Metadata map[string]string

	// FinalMetadata tells metadata that are known only when Body has been read to
	// its end, and is called then; nil: there are none. They are kept where the
	// store takes metadata that late: always on volumes and ABS; on GCS too, if the
	// request that adds them to a large object is allowed and succeeds; on S3 and OSS
	// where the object is small enough to be sent in one request.
	FinalMetadata func() map[string]string
}

// Object is something stored.
type Object struct {
	// Key is its whole key, and does not hold the bucket.
	Key  string
	Size int64 // in bytes
	// Modified is when it became visible.
	Modified time.Time
	// Metadata as they were given to Put; List need not tell them.
	Metadata map[string]string
}

// Kinds of errors that somebody has to act on, each in another way; errors.Is
// finds them.
var (
	// ErrNotFound: there is no object with the key.
	ErrNotFound = errors.New("there is no such object")
	// ErrNoBucket: the bucket, container or directory does not exist.
	ErrNoBucket = errors.New("there is no such bucket")
	// ErrDenied: the credentials are wrong, or don't allow what was tried.
	ErrDenied = errors.New("the store refused the credentials or what they may do")
	// ErrLeft: an upload failed, and what had been sent could not be removed. What
	// stands under its key now must not be trusted.
	ErrLeft = errors.New("what had been sent could not be removed")
	// ErrConfig: what is configured can't be understood; nothing was sent.
	ErrConfig = errors.New("wrong configuration")
)
