// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Get reads a file from an offset on.
func (s *Store) Get(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	info, err := s.lookUp(key)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", s.name(key), explain(err))
	}
	if offset > info.Size() {
		return nil, fmt.Errorf("get %s from byte %d: it has %d bytes", s.name(key), offset, info.Size())
	}
	file, err := s.root.Open(key)
	if absent(err) {
		err = store.ErrNotFound // deleted since
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", s.name(key), explain(err))
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("get %s from byte %d: %w", s.name(key), offset, err), file.Close())
	}
	return file, nil
}

// Stat returns a file's properties.
func (s *Store) Stat(_ context.Context, key string) (store.Object, error) {
	object, err := s.stat(key)
	if err != nil {
		return store.Object{}, fmt.Errorf("stat %s: %w", s.name(key), explain(err))
	}
	return object, nil
}

func (s *Store) stat(key string) (store.Object, error) {
	info, err := s.lookUp(key)
	if err != nil {
		return store.Object{}, err
	}
	values, err := s.readMetadata(key, info)
	if err != nil {
		return store.Object{}, err
	}
	return store.Object{Key: key, Size: info.Size(), Modified: info.ModTime(), Metadata: values}, nil
}

// lookUp returns the file of an object. Only a plain file is an object.
func (s *Store) lookUp(key string) (fs.FileInfo, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	info, err := s.root.Lstat(key)
	switch {
	case absent(err):
		return nil, store.ErrNotFound
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, store.ErrNotFound
	}
	return info, nil
}

// List yields the files whose paths begin with a prefix.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		wanted := func(name string) bool {
			_, is := parseHidden(name)
			return !is && strings.HasPrefix(name, prefix)
		}
		err := s.walk(ctx, prefix, wanted, func(key string, info fs.FileInfo) error {
			if !yield(store.Object{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(store.Object{}, fmt.Errorf("list %s: %w", s.name(prefix), explain(err)))
		}
	}
}

// walk visits the plain files of all directories that may hold paths with a prefix, if they are wanted. It
// asks nothing about the others: each answer of a remote file system takes its time, and each object has a
// hidden file.
func (s *Store) walk(ctx context.Context, prefix string, wanted func(name string) bool, visit func(name string, info fs.FileInfo) error) error {
	start := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = prefix[:i]
	}
	if start != "." && checkKey(start) != nil {
		return nil // there are none
	}
	return fs.WalkDir(s.root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case absent(err):
			return nil // it never existed, or was removed since
		case err != nil:
			return err
		case entry.IsDir():
			if below := name + "/"; name != "." && !strings.HasPrefix(below, prefix) && !strings.HasPrefix(prefix, below) {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular(), !wanted(name):
			return nil
		}
		info, err := entry.Info()
		if absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(name, info)
	})
}

// Delete deletes a file and its metadata.
func (s *Store) Delete(_ context.Context, key string) error {
	if err := s.remove(key); err != nil {
		return fmt.Errorf("delete %s: %w", s.name(key), explain(err))
	}
	return nil
}

func (s *Store) remove(key string) error {
	info, err := s.lookUp(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.root.Remove(key); err != nil && !absent(err) {
		return err
	}
	if err := s.root.Remove(metadataOf(key, info).path()); err != nil && !absent(err) {
		return err
	}
	return s.syncDir(path.Dir(key))
}
