// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package osstest

import (
	"crypto/md5" // OSS's ETags
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// disk keeps contents in files of a directory, and an index of them.
type disk struct{ dir string }

// blob is the content of one request.
type blob struct {
	File string
	Size int64
	MD5  [md5.Size]byte
	CRC  uint64
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func (b blob) etag() string { return fmt.Sprintf("\"%X\"", b.MD5) }
func (b blob) crc() string  { return strconv.FormatUint(b.CRC, 10) }

func (d disk) index() string { return filepath.Join(d.dir, "index.json") }

func (d disk) load() (map[string]*bucket, error) {
	state := map[string]*bucket{}
	text, err := os.ReadFile(d.index())
	if errors.Is(err, fs.ErrNotExist) {
		return state, os.MkdirAll(d.dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	return state, json.Unmarshal(text, &state)
}

func (d disk) save(state map[string]*bucket) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.index()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(d.index()+".new", d.index())
}

// write stores content; if the content breaks off, it stores nothing.
func (d disk) write(content io.Reader) (blob, error) {
	file, err := os.CreateTemp(d.dir, "blob-")
	if err != nil {
		return blob{}, err
	}
	b := blob{File: filepath.Base(file.Name())}
	sum, crc := md5.New(), crc64.New(crcTable)
	b.Size, err = io.Copy(io.MultiWriter(file, sum, crc), content)
	if err := errors.Join(err, file.Close()); err != nil {
		d.remove(b)
		return blob{}, err
	}
	b.MD5, b.CRC = [md5.Size]byte(sum.Sum(nil)), crc.Sum64()
	return b, nil
}

func (d disk) remove(blobs ...blob) {
	for _, b := range blobs {
		if b.File == "" {
			continue
		}
		_ = os.Remove(filepath.Join(d.dir, b.File)) // at worst it stays until the directory is removed
	}
}

// read reads content of several parts, from a byte on.
func (d disk) read(parts []blob, from int64) (io.ReadCloser, error) {
	r := &reader{}
	var files []io.Reader
	for _, p := range parts {
		if from >= p.Size {
			from -= p.Size
			continue
		}
		file, err := os.Open(filepath.Join(d.dir, p.File))
		if err == nil {
			r.files = append(r.files, file)
			_, err = file.Seek(from, io.SeekStart)
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		files = append(files, file)
		from = 0
	}
	r.Reader = io.MultiReader(files...)
	return r, nil
}

func (d disk) crcOf(parts []blob) (string, error) {
	content, err := d.read(parts, 0)
	if err != nil {
		return "", err
	}
	defer content.Close()
	crc := crc64.New(crcTable)
	_, err = io.Copy(crc, content)
	return strconv.FormatUint(crc.Sum64(), 10), err
}

type reader struct {
	io.Reader
	files []*os.File
}

func (r *reader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
