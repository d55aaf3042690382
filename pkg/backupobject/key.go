// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupobject is how a backup looks in a store: its key, and its metadata.
// Who makes backups and who restores them agree on it here.
package backupobject

import (
	"strconv"
	"strings"
	"time"
)

// dateLayout is that of v0.9.4, in UTC.
const dateLayout = "2006-01-02-15:04:05"

// KeyPrefix is what the keys of all backups on a schedule begin with.
func KeyPrefix(path string) string { return path + "_v" }

// Key is the key of a backup on a schedule: <path>_v<revision>_<date>.
func Key(path string, revision int64, begun time.Time) string {
	return KeyPrefix(path) + strconv.FormatInt(revision, 10) + "_" + begun.UTC().Format(dateLayout)
}

// ParseKey is the reverse of Key. It takes nothing that Key
// would not have made of the same path: a sibling's key may begin like one of ours.
func ParseKey(path, key string) (revision int64, begun time.Time, ok bool) {
	rest, ours := strings.CutPrefix(key, KeyPrefix(path))
	number, date, dated := strings.Cut(rest, "_")
	if !ours || !dated {
		return 0, time.Time{}, false
	}
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil || revision < 0 {
		return 0, time.Time{}, false
	}
	begun, err = time.Parse(dateLayout, date)
	if err != nil || Key(path, revision, begun) != key {
		return 0, time.Time{}, false
	}
	return revision, begun, true
}
