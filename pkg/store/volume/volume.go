// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volume stores backups in a directory, such as the mount of a PersistentVolumeClaim.
// An object is a plain file under its key. Slashes in the key make directories, which stay.
//
// Beside a file are hidden files that List leaves out: its metadata and, while it is written,
// the upload; see hidden.go.
package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Config names the directory.
type Config struct {
	// Root is the directory where the volume is mounted. It must exist.
	Root string
	// Dir is the directory below Root that confines the store: no key and no symbolic link
	// leads out of it. Open creates it. Default: Root itself.
	Dir string
}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Store is a directory.
type Store struct {
	root  *os.Root
	dir   string // for errors
	fsync func(*os.File) error
	// rename is that of root; tests replace it.
	rename func(from, to string) error
}

var _ store.Store = (*Store)(nil)

// Open opens the directory. Its error is store.ErrNoBucket if Root does not exist, and
// store.ErrDenied if it can't create or read Dir.
func Open(_ context.Context, config Config) (*Store, error) {
	opened, err := open(config)
	if err != nil {
		return nil, fmt.Errorf("open the volume directory %s: %w", filepath.Join(config.Root, config.Dir), explain(err))
	}
	return opened, nil
}

func open(config Config) (*Store, error) {
	if config.Root == "" {
		return nil, fmt.Errorf("%w: the operator has no volume: give it one with -volume-dir", store.ErrConfig)
	}
	root, err := os.OpenRoot(config.Root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", store.ErrNoBucket, err)
	case err != nil:
		return nil, err
	}
	opened := &Store{root: root, dir: filepath.Join(config.Root, config.Dir), fsync: (*os.File).Sync, rename: root.Rename}
	if config.Dir == "" {
		return opened, nil
	}
	defer root.Close()
	if err := checkKey(config.Dir); err != nil {
		return nil, err
	}
	// Open does not create an existing directory: a read-only volume is readable.
	if _, err := root.Stat(config.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := opened.makeDirs(config.Dir); err != nil {
			return nil, err
		}
	}
	if opened.root, err = root.OpenRoot(config.Dir); err != nil {
		return nil, err
	}
	opened.rename = opened.root.Rename
	return opened, nil
}

// Close closes the directory.
func (s *Store) Close() error { return s.root.Close() }

// name returns an object's name for errors.
func (s *Store) name(key string) string { return s.dir + "/" + key }

// checkKey returns an error unless a key is the path of a file below a directory, and not a
// hidden file's.
func checkKey(key string) error {
	if !fs.ValidPath(key) || key == "." || strings.ContainsRune(key, 0) {
		return fmt.Errorf("%w: the path must be a relative one, without parts that are empty or dots", store.ErrConfig)
	}
	for part := range strings.SplitSeq(key, "/") {
		if len(part) > maxName {
			return fmt.Errorf("%w: a part of the path is longer than %d bytes", store.ErrConfig, maxName)
		}
	}
	if _, is := parseHidden(key); is {
		return fmt.Errorf("%w: names of this form are kept for uploads and metadata", store.ErrConfig)
	}
	return nil
}

// makeDirs durably creates a directory and its parents.
func (s *Store) makeDirs(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := s.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := path.Dir(dir)
	if err := s.makeDirs(above); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, dirMode); err != nil {
		if errors.Is(err, fs.ErrExist) { // somebody was faster; or it is a file, and the rename fails
			return nil
		}
		return err
	}
	return s.syncDir(above)
}

// syncDir makes the names in a directory durable.
func (s *Store) syncDir(dir string) error { return s.sync(dir) }

// sync makes a file or a directory durable.
func (s *Store) sync(name string) error {
	opened, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(s.fsync(opened), opened.Close())
}

// explain wraps the kind of a file system's error.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: the volume is full: make it larger, or keep fewer backups: %w", store.ErrFull, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the volume is mounted read-only: %w", store.ErrDenied, err)
	case errors.Is(err, fs.ErrPermission) && !errors.Is(err, store.ErrDenied):
		return fmt.Errorf("%w: the operator's user may not do it: set fsGroup in its pod's securityContext: %w", store.ErrDenied, err)
	default:
		return err
	}
}

// absent reports whether an error means that there is no such file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}
