// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"
)

// An endpoint is named by a user, and whoever answers there may claim anything.

// sizeMargin is how much larger than its database a snapshot may be, besides twice
// the size: the database grows between the two questions.
const sizeMargin = 64 << 20

// credible tells whether a snapshot can have the size that is announced, by the size
// of the database that the member has told a moment before; 0: it told none.
func credible(size, database int64) error {
	switch {
	case size <= 0:
		return errors.New("it announces a snapshot without a size: is it an etcd member?")
	case database > 0 && (size-sizeMargin)/2 > database:
		return fmt.Errorf("it announces a snapshot of %d bytes, and its database has %d: is it an etcd member?", size, database)
	default:
		return nil
	}
}

// longestVersion is longer than any version of etcd, with what builders add to it.
const longestVersion = 40

// shown is a version as it may stand in a status, in metadata and in logs.
func shown(version string) string {
	visible := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, version[:min(len(version), 10*longestVersion)])
	return visible[:min(len(visible), longestVersion)]
}
