// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
)

// A file's metadata stand in another file, as not all file systems have extended
// attributes. Its name holds the time and size of the very content that they
// belong to: it is there before the content becomes visible, by one rename, and at
// no time does content have another's metadata, whenever the process dies.
// Sweep removes those that belong to nothing.
const (
	uploading = "uploading"
	metadata  = "metadata"
)

// maxName is the longest name of a file, in bytes, that leaves room for those of
// hidden files beside it. File systems take 255.
const maxName = 200

var hiddenName = regexp.MustCompile(`^\.(.+)\.([0-9a-f]+(?:-[0-9]+)?)\.(` + uploading + `|` + metadata + `)$`)

// hidden is a file that is no object.
type hidden struct {
	key  string // of the object that it belongs to
	id   string
	kind string // uploading or metadata
}

func (h hidden) path() string {
	return path.Join(path.Dir(h.key), "."+path.Base(h.key)+"."+h.id+"."+h.kind)
}

// parseHidden tells whether a path is that of a hidden file.
func parseHidden(name string) (hidden, bool) {
	found := hiddenName.FindStringSubmatch(path.Base(name))
	if found == nil {
		return hidden{}, false
	}
	return hidden{key: path.Join(path.Dir(name), found[1]), id: found[2], kind: found[3]}, true
}

// metadataOf names the file of the metadata of content.
func metadataOf(key string, content fs.FileInfo) hidden {
	id := strconv.FormatUint(uint64(content.ModTime().UnixNano()), 16) + "-" + strconv.FormatInt(content.Size(), 10)
	return hidden{key: key, id: id, kind: metadata}
}

// writeMetadata writes the file of metadata, to stay after a crash.
func (s *Store) writeMetadata(file hidden, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	out, err := s.root.OpenFile(file.path(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return errors.Join(err, out.Sync(), out.Close())
}

// readMetadata reads the metadata of content; none where there are none.
func (s *Store) readMetadata(key string, content fs.FileInfo) (map[string]string, error) {
	file := metadataOf(key, content)
	text, err := s.root.ReadFile(file.path())
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("read the metadata in %s: %w", s.name(file.path()), err)
	}
	return values, nil
}
