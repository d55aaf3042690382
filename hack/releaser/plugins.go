// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// A pluginArchive holds the plugin for a platform.
type pluginArchive struct {
	platform platform
	name     string
	sha256   string
	program  string // in the archive
}

// writePlugins writes the archives of the plugin: krew and people unpack them.
func (r *release) writePlugins(programs []program, directory string) ([]pluginArchive, error) {
	license, err := os.ReadFile(filepath.Join(r.source.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var archives []pluginArchive
	for _, p := range programs {
		if p.directory != plugin {
			continue
		}
		content, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		write, suffix := tarGz, ".tar.gz"
		if p.platform.os == "windows" {
			write, suffix = zipped, ".zip"
		}
		a := pluginArchive{
			platform: p.platform, program: filepath.Base(p.file),
			name: fmt.Sprintf("%s_%s_%s_%s%s", plugin, r.source.Version, p.platform.os, p.platform.arch, suffix),
		}
		entries := []entry{{"LICENSE", 0o644, license}, {a.program, 0o755, content}}
		var text bytes.Buffer
		if err := write(&text, entries, r.time); err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		if err := os.WriteFile(filepath.Join(directory, a.name), text.Bytes(), 0o644); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text.Bytes())
		a.sha256 = hex.EncodeToString(sum[:])
		archives = append(archives, a)
	}
	return archives, nil
}
