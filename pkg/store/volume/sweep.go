// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Sweep removes files of uploads that were last written before a time, and metadata of that
// age without content.
func (s *Store) Sweep(ctx context.Context, prefix string, before time.Time, mine func(key string) bool) (int, error) {
	swept := 0
	wanted := func(name string) bool {
		file, is := parseHidden(name)
		return is && strings.HasPrefix(file.key, prefix)
	}
	err := s.walk(ctx, prefix, wanted, func(name string, info fs.FileInfo) error {
		file, _ := parseHidden(name)
		if !info.ModTime().Before(before) || !mine(file.key) {
			return nil
		}
		if file.kind == metadata {
			if content, err := s.lookUp(file.key); err == nil && metadataOf(file.key, content) == file {
				return nil
			}
		}
		if err := s.root.Remove(name); err != nil && !absent(err) {
			return err
		}
		if file.kind == uploading {
			swept++
		}
		return nil
	})
	if err != nil {
		return swept, fmt.Errorf("sweep %s: %w", s.name(prefix), explain(err))
	}
	return swept, nil
}
