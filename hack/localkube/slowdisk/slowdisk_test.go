// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package slowdisk

import (
	"testing"
	"time"
)

func TestADelayIsForFilesBelowADirectoryOfItsName(t *testing.T) {
	delays := t.TempDir()
	for name, takes := range map[string]time.Duration{"slow": time.Second, "hanging": time.Hour} {
		if err := SetDelay(delays, name, takes); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]time.Duration{
		"slow/file":              time.Second,
		"a/slow/b/file":          time.Second,
		"slow/hanging/file":      time.Hour,
		"other/file":             0,
		"slower/file":            0,
		"slow":                   0, // a file of that name
		"file":                   0,
		"pods/hanging/data/file": time.Hour,
	} {
		if got := delay(delays, path); got != want {
			t.Errorf("%s takes %s, want %s", path, got, want)
		}
	}
	for range 2 { // to take back what is not there is no error
		if err := SetDelay(delays, "hanging", 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := delay(delays, "slow/hanging/file"); got != time.Second {
		t.Errorf("after the delay is taken back, it takes %s", got)
	}
}
