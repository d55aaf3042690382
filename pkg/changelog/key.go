// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Key is what the key of a segment in a store says.
type Key struct {
	// Text is the whole key.
	Text        string
	Cluster     uint64
	First, Last int64
	Until       time.Time // in milliseconds
}

// KeyPrefix returns how the keys of all segments below a path begin.
func KeyPrefix(path string) string { return path + "_log/" }

// ClusterPrefix returns how the keys of one cluster's segments begin.
func ClusterPrefix(path string, cluster uint64) string {
	return KeyPrefix(path) + fmt.Sprintf("%016x/", cluster)
}

// KeyOf returns the key of a segment below a path. Two segments have the same only if they
// cover the same and were made in the same millisecond. In the order of the alphabet, keys of a
// cluster are in that of their revisions.
func KeyOf(path string, s *Segment) string {
	return textOf(path, Key{Cluster: s.Cluster, First: s.First, Last: s.Last, Until: s.Until})
}

func textOf(path string, k Key) string {
	return ClusterPrefix(path, k.Cluster) + fmt.Sprintf("%019d-%019d-%013d", k.First, k.Last, millis(k.Until))
}

const (
	// block is the number of revisions with a prefix of Prefixes.
	block = 10_000
	// blockDigits is the number of digits that they have in common, of 19.
	blockDigits = 15
)

// Prefixes returns how the keys of a cluster's segments begin whose first revision lies between two
// revisions. Keys of up to 10,000 revisions around them begin so, too.
func Prefixes(path string, cluster uint64, from, to int64) (prefixes []string) {
	for n := max(from, 0) / block; n <= to/block; n++ {
		prefixes = append(prefixes, ClusterPrefix(path, cluster)+fmt.Sprintf("%0*d", blockDigits, n))
	}
	return prefixes
}

var keyFormat = regexp.MustCompile(`^([0-9a-f]{16})/([0-9]{19})-([0-9]{19})-([0-9]{13})$`)

// ParseKey reads a key that KeyOf has made; false: it has not.
func ParseKey(path, key string) (Key, bool) {
	rest, ours := strings.CutPrefix(key, KeyPrefix(path))
	parts := keyFormat.FindStringSubmatch(rest)
	if !ours || parts == nil {
		return Key{}, false
	}
	k := Key{Text: key}
	var errs [4]error
	var until int64
	k.Cluster, errs[0] = strconv.ParseUint(parts[1], 16, 64)
	k.First, errs[1] = strconv.ParseInt(parts[2], 10, 64)
	k.Last, errs[2] = strconv.ParseInt(parts[3], 10, 64)
	until, errs[3] = strconv.ParseInt(parts[4], 10, 64)
	k.Until = time.UnixMilli(until).UTC()
	for _, err := range errs {
		if err != nil {
			return Key{}, false
		}
	}
	return k, k.First >= 1 && k.Last >= k.First-1
}

// Fits reports whether a segment is what its key says.
func (k Key) Fits(s *Segment) bool {
	return k.Cluster == s.Cluster && k.First == s.First && k.Last == s.Last && k.Until.Equal(s.Until)
}
