// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// An entry is a file in an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// entriesOf reads a directory, in the order of the names. The archive gets it under a name.
func entriesOf(directory, name string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(directory, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(directory, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		// The mode of a file in a work tree depends on the umask.
		entries = append(entries, entry{path.Join(name, filepath.ToSlash(relative)), 0o644, content})
		return err
	})
	return entries, err
}

// tarGz writes entries whose only time is the given one.
func tarGz(w io.Writer, entries []entry, t time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		// No owner: whoever unpacks owns the files.
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: t, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// zipped does the same for Windows.
func zipped(w io.Writer, entries []entry, t time.Time) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: t.UTC()}
		header.SetMode(e.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeFile writes what a function writes.
func writeFile(file string, write func(*bytes.Buffer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	return os.WriteFile(file, content.Bytes(), 0o644)
}
