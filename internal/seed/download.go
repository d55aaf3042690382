// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// download is a partial backup in a file. The file gets its final name when it is complete.
type download struct {
	dir    string
	size   int64
	sha256 string

	file  *os.File
	have  int64
	hash  hash.Hash // of the bytes in the file
	whole bool
}

// openDownload continues the download of an earlier container. Its errors are errors of the
// disk.
func openDownload(dir string, size int64, digest string) (*download, error) {
	d := &download{dir: dir, size: size, sha256: digest, hash: sha256.New()}
	complete, part := filepath.Join(dir, snapshotFile), filepath.Join(dir, partFile)
	// A complete file is verified again, like any part.
	if err := os.Rename(complete, part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look at the backup in %s: %w", dir, err)
	}
	var err error
	if d.file, err = os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("make a file for the backup: %w", err)
	}
	if d.have, err = io.Copy(d.hash, d.file); err != nil {
		d.close()
		return nil, fmt.Errorf("read what is here of the backup: %w", err)
	}
	if d.have < size {
		return d, nil
	}
	if err := d.finish(); errors.Is(err, errWrongContent) {
		return d, nil // openDownload has reset it
	} else if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// Write appends the next bytes. It refuses bytes beyond the backup's size.
func (d *download) Write(p []byte) (int, error) {
	if int64(len(p)) > d.size-d.have {
		return 0, fmt.Errorf("%w: it is larger than %d bytes", errSpoilt, d.size)
	}
	n, err := d.file.Write(p)
	d.hash.Write(p[:n])
	d.have += int64(n)
	if err != nil {
		return n, &diskError{fmt.Errorf("write the backup to the disk: %w", err)}
	}
	return n, nil
}

// finish verifies the file and gives it its final name. It discards a file with other content.
func (d *download) finish() error {
	if got := hex.EncodeToString(d.hash.Sum(nil)); d.have != d.size || got != d.sha256 {
		if err := d.reset(); err != nil {
			return err
		}
		return fmt.Errorf("%w: its SHA-256 is %s, and should be %s", errSpoilt, got, d.sha256)
	}
	err := d.file.Sync()
	if err == nil {
		err = os.Rename(filepath.Join(d.dir, partFile), filepath.Join(d.dir, snapshotFile))
	}
	if err == nil {
		err = datadir.SyncDir(d.dir)
	}
	if err != nil {
		return &diskError{fmt.Errorf("keep the backup on the disk: %w", err)}
	}
	d.whole = true
	return nil
}

// reset empties the file.
func (d *download) reset() error {
	_, err := d.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, d.file.Truncate(0)); err != nil {
		return &diskError{fmt.Errorf("empty the file for the backup: %w", err)}
	}
	d.have = 0
	d.hash.Reset()
	return nil
}

func (d *download) close() { _ = d.file.Close() } // complete data is synced already
