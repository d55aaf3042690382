// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// leave copies a program to a file. Only a complete copy has the file's name.
func leave(program, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the program of the etcd container to %s: %w", file, err)
		}
	}()
	source, err := os.Open(program)
	if err != nil {
		return err
	}
	defer source.Close()
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	target, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return os.Rename(part, file)
}
