// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"
)

// Users name the endpoints, and the server there may claim anything.

// sizeMargin is how much larger a snapshot may be than twice its database, which may grow
// between the two requests.
const sizeMargin = 64 << 20

// credible checks the announced size of a snapshot against the database size that the member
// has just reported; 0: it reported none.
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

// longestVersion is longer than any version of etcd with a builder's suffix.
const longestVersion = 40

// shown returns a version in a form that is safe for a status, metadata and logs.
func shown(version string) string {
	visible := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, version[:min(len(version), 10*longestVersion)])
	return visible[:min(len(visible), longestVersion)]
}
