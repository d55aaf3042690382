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
)

// download is a backup that arrives, in a file of its own until it is whole.
type download struct {
	dir    string
	size   int64
	sha256 string

	file  *os.File
	have  int64
	hash  hash.Hash // of what is there
	whole bool
}

// openDownload goes on with what an earlier container has left. Its errors are the
// disk's.
func openDownload(dir string, size int64, digest string) (*download, error) {
	d := &download{dir: dir, size: size, sha256: digest, hash: sha256.New()}
	complete, part := filepath.Join(dir, snapshotFile), filepath.Join(dir, partFile)
	// One that was whole is looked at once more, like any part.
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
		return d, nil // it was reset
	} else if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// Write takes the next bytes. It refuses what is more than the backup.
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

// finish checks what has arrived, and gives it its final name. What is wrong is thrown
// away.
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
		err = syncDir(d.dir)
	}
	if err != nil {
		return &diskError{fmt.Errorf("keep the backup on the disk: %w", err)}
	}
	d.whole = true
	return nil
}

// reset begins anew.
func (d *download) reset() error {
	_, err := d.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, d.file.Truncate(0)); err != nil {
		return &diskError{fmt.Errorf("empty the file for the backup: %w", err)}
	}
	d.have = 0
	d.hash.Reset()
	return nil
}

func (d *download) close() { _ = d.file.Close() } // what counts was synced
