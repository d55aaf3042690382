//go:build !linux

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
)

// inMemory only exists on Linux, where operators run.
func inMemory(name string, _ []byte) (path string, closeFile func(), err error) {
	return "", nil, fmt.Errorf("make a file in memory for %s: %w", name, errors.ErrUnsupported)
}
