// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// bufferSize of copies: the network delivers far smaller pieces.
const bufferSize = 1 << 20

// Put writes a file under a hidden name beside its own, syncs it to the disk, and renames it.
func (s *Store) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	object, err := s.put(ctx, key, u)
	if err != nil {
		return store.Object{}, fmt.Errorf("put %s: %w", s.name(key), explain(err))
	}
	return object, nil
}

func (s *Store) put(ctx context.Context, key string, u store.Upload) (object store.Object, err error) {
	if err := checkKey(key); err != nil {
		return store.Object{}, err
	}
	dir := path.Dir(key)
	if err := s.makeDirs(dir); err != nil {
		return store.Object{}, err
	}
	upload := hidden{key: key, id: newID(), kind: uploading}
	made := []string{upload.path()} // what to remove after a failure
	defer func() {
		if err == nil {
			return
		}
		for _, file := range made {
			if removal := s.root.Remove(file); removal != nil && !absent(removal) {
				err = fmt.Errorf("%w; %w: %w", err, store.ErrLeft, removal)
			}
		}
	}()
	if err := s.write(ctx, upload.path(), u.Body); err != nil {
		return store.Object{}, err
	}
	values := maps.Clone(u.Metadata)
	if u.FinalMetadata != nil {
		if values == nil {
			values = map[string]string{}
		}
		maps.Copy(values, u.FinalMetadata())
	}
	content, beside, err := s.bind(upload, values)
	if err != nil {
		return store.Object{}, err
	}
	made = append(made, beside.path())
	if ctx.Err() != nil {
		return store.Object{}, context.Cause(ctx)
	}
	former, err := s.root.Lstat(key)
	if err != nil && !absent(err) {
		return store.Object{}, err
	}
	opened, err := s.root.Open(dir) // what fails must fail before the rename
	if err != nil {
		return store.Object{}, err
	}
	defer opened.Close()
	if err := s.rename(upload.path(), key); err != nil && !s.isAt(key, content) {
		return store.Object{}, err
	}
	made = nil // the content is complete, and what it replaces is gone
	if err := s.fsync(opened); err != nil {
		return store.Object{}, fmt.Errorf("the file is complete and stays, but a crash of the node could lose it: %w", err)
	}
	if former != nil && metadataOf(key, former) != beside {
		_ = s.root.Remove(metadataOf(key, former).path()) // Sweep removes it after a failure
	}
	return store.Object{Key: key, Size: content.Size(), Modified: content.ModTime(), Metadata: values}, nil
}

// isAt reports whether a key names this file. A rename on NFS can succeed and report an error: the
// server's answer was lost, and at the second request the file had gone from its former name.
func (s *Store) isAt(key string, file os.FileInfo) bool {
	found, err := s.root.Lstat(key)
	return err == nil && os.SameFile(found, file)
}

// write durably writes a new file.
func (s *Store) write(ctx context.Context, name string, body io.Reader) error {
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	written, err := io.CopyBuffer(struct{ io.Writer }{file}, reader{ctx, body}, make([]byte, bufferSize))
	if err != nil {
		return errors.Join(err, file.Close())
	}
	// Some file systems report only now that the volume is full.
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	if info.Size() != written {
		return fmt.Errorf("the file has %d bytes, and %d were written", info.Size(), written)
	}
	return nil
}

// reader ends with its context.
type reader struct {
	ctx  context.Context
	body io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.body.Read(p)
}

func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // it does not fail
	return hex.EncodeToString(id[:])
}
