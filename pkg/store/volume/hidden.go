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
	"time"
)

// A file's metadata are in another file, since not all file systems have extended attributes.
// Its name holds the time and size of the content that it belongs to. It exists before one
// rename makes the content visible. So content never has another's metadata, whenever the
// process dies. Sweep removes metadata without content.
const (
	uploading = "uploading"
	metadata  = "metadata"
)

// maxName is the longest name of a file, in bytes, that leaves space for the names of its
// hidden files. File systems allow 255.
const maxName = 200

var hiddenName = regexp.MustCompile(`^\.(.+)\.([0-9a-f]+(?:-[0-9]+)?)\.(` + uploading + `|` + metadata + `)$`)

// hidden is a file that is no object.
type hidden struct {
	key  string // of its object
	id   string
	kind string // uploading or metadata
}

func (h hidden) path() string {
	return path.Join(path.Dir(h.key), "."+path.Base(h.key)+"."+h.id+"."+h.kind)
}

// parseHidden reports whether a path is a hidden file's.
func parseHidden(name string) (hidden, bool) {
	found := hiddenName.FindStringSubmatch(path.Base(name))
	if found == nil {
		return hidden{}, false
	}
	return hidden{key: path.Join(path.Dir(name), found[1]), id: found[2], kind: found[3]}, true
}

// metadataOf names the metadata file of content.
func metadataOf(key string, content fs.FileInfo) hidden {
	id := strconv.FormatUint(uint64(content.ModTime().UnixNano()), 16) + "-" + strconv.FormatInt(content.Size(), 10)
	return hidden{key: key, id: id, kind: metadata}
}

// earlier is how many seconds content may be backdated, so that no other content of the same
// key and size has its time.
const earlier = 60

// bind durably writes the metadata of uploaded content, and returns the names of both.
//
// The content gets the time of a whole second. File systems of other machines (SMB, NFS) may
// round times, and may set them again when the file is closed. A time reported before that
// would differ from the one reported later.
func (s *Store) bind(upload hidden, values map[string]string) (fs.FileInfo, hidden, error) {
	now := time.Now().Truncate(time.Second)
	for ago := range earlier {
		at := now.Add(-time.Duration(ago) * time.Second)
		if err := s.root.Chtimes(upload.path(), at, at); err != nil && ago > 0 {
			return nil, hidden{}, err // or the file keeps its time
		}
		if err := s.sync(upload.path()); err != nil {
			return nil, hidden{}, err
		}
		content, err := s.root.Lstat(upload.path())
		if err != nil {
			return nil, hidden{}, err
		}
		beside := metadataOf(upload.key, content)
		if err = s.writeMetadata(beside, values); !errors.Is(err, fs.ErrExist) {
			return content, beside, err
		}
		// These metadata belong to the content to be replaced, or to another upload.
	}
	return nil, hidden{}, fmt.Errorf("too many files of the same size were written to %s within a minute", s.name(upload.key))
}

// writeMetadata durably writes a new file of metadata.
func (s *Store) writeMetadata(file hidden, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	out, err := s.root.OpenFile(file.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, s.root.Remove(file.path()))
	}
	return nil
}

// readMetadata reads the metadata of content, or none.
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
