// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"math"
	"strings"
	"testing"
)

func TestSizesThatCantBeTrueAreRefused(t *testing.T) {
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		size, database int64
		credible       bool
	}{
		"the database and its sum":      {16*1024 + 32, 16 * 1024, true},
		"defragmented meanwhile":        {16 * 1024, 8 << 30, true},
		"a small one that grew":         {64*mib + 8192, 4096, true},
		"a large one that grew":         {1000 * mib, 500 * mib, true},
		"no size of the database":       {8 << 30, 0, true},
		"none":                          {0, 0, false},
		"negative":                      {math.MinInt64, 4096, false},
		"far from that of the database": {5e17, 4096, false},
		"a little too far":              {64*mib + 2*500*mib + 2, 500 * mib, false},
		"as large as can be":            {math.MaxInt64, 8 << 30, false},
	} {
		if err := credible(tt.size, tt.database); (err == nil) != tt.credible {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVersionsAreShownInAFewVisibleCharacters(t *testing.T) {
	for version, want := range map[string]string{
		"3.6.16":                     "3.6.16",
		"3.7.0-alpha.0+git.deadbeef": "3.7.0-alpha.0+git.deadbeef",
		"3.6\r\nX-Evil: 1é\x00":      "3.6X-Evil:1",
		strings.Repeat("9", 1<<20):   strings.Repeat("9", longestVersion),
		"":                           "",
	} {
		if got := shown(version); got != want {
			t.Errorf("%.20q is shown as %q", version, got)
		}
	}
}
