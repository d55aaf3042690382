// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"
	"time"
)

func TestWhatALeaseAllows(t *testing.T) {
	const ttl = time.Minute
	alive := leased{key: "k", ttl: ttl, alive: time.Hour}
	revoked := alive
	revoked.revoked = true
	for name, tc := range map[string]struct {
		l     leased
		found bool
		after time.Duration // the last renewal
		good  bool
	}{
		"a key of a lease that lives":     {alive, true, time.Second, true},
		"it is lost":                      {alive, false, time.Second, false},
		"it is lost just before its time": {alive, false, ttl - leaseSlack - time.Second, false},
		"its lease may have ended":        {alive, false, ttl, true},
		"nobody has ended its lease":      {alive, true, 2 * ttl, true},
		"a lease was revoked":             {revoked, false, time.Second, true},
		"and its key is there":            {revoked, true, time.Second, false},
		"and its key is there for long":   {revoked, true, 2 * ttl, false},
	} {
		if err := tc.l.check(tc.found, tc.l.alive+tc.after); (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
