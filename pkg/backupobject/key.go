// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupobject defines a backup's form in a store: its key, and its metadata. The
// backup operator and the restore operator share it.
package backupobject

import (
	"strconv"
	"strings"
	"time"
)

// dateLayout is v0.9.4's, in UTC.
const dateLayout = "2006-01-02-15:04:05"

// KeyPrefix returns the prefix of the keys of all backups on a schedule.
func KeyPrefix(path string) string { return path + "_v" }

// Key returns the key of a backup on a schedule: <path>_v<revision>_<date>.
func Key(path string, revision int64, begun time.Time) string {
	return KeyPrefix(path) + strconv.FormatInt(revision, 10) + "_" + begun.UTC().Format(dateLayout)
}

// ParseKey is the reverse of Key. It rejects a key that Key would not have made of the same
// path: another schedule's key may have the same prefix.
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
