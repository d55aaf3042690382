// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"time"
)

// leaseSlack is how much earlier than promised a lease may end: a leader that has just
// lost its office may renew a lease that the next one knows nothing of.
const leaseSlack = 5 * time.Second

// A leased key belongs to a lease. Times are since some start.
type leased struct {
	key     string
	ttl     time.Duration
	alive   time.Duration // when the last renewal was sent that was acknowledged
	revoked bool          // a revocation was acknowledged
}

// check reports an error if a read that ended at a time, and found the key or not, is
// none that the lease allows.
func (l leased) check(found bool, ended time.Duration) error {
	switch {
	case l.revoked && found:
		return fmt.Errorf("%s is there, and its lease was revoked", l.key)
	case !l.revoked && !found && ended < l.alive+l.ttl-leaseSlack:
		return fmt.Errorf("%s is gone, and its lease of %s was kept alive %s before", l.key, l.ttl, ended-l.alive)
	}
	return nil
}
