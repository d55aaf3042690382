// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strconv"
	"strings"
	"time"
)

// dateLayout is that of v0.9.4, in UTC.
const dateLayout = "2006-01-02-15:04:05"

// periodicPrefix is what the keys of all backups on a schedule begin with.
func periodicPrefix(path string) string { return path + "_v" }

// periodicKey is the key of a backup on a schedule: <path>_v<revision>_<date>.
func periodicKey(path string, revision int64, begun time.Time) string {
	return periodicPrefix(path) + strconv.FormatInt(revision, 10) + "_" + begun.UTC().Format(dateLayout)
}

// parsePeriodicKey is the reverse of periodicKey. It takes nothing that periodicKey
// would not have made of the same path: a sibling's key may begin like one of ours.
func parsePeriodicKey(path, key string) (revision int64, begun time.Time, ok bool) {
	rest, ours := strings.CutPrefix(key, periodicPrefix(path))
	number, date, dated := strings.Cut(rest, "_")
	if !ours || !dated {
		return 0, time.Time{}, false
	}
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil || revision < 0 {
		return 0, time.Time{}, false
	}
	begun, err = time.Parse(dateLayout, date)
	if err != nil || periodicKey(path, revision, begun) != key {
		return 0, time.Time{}, false
	}
	return revision, begun, true
}
