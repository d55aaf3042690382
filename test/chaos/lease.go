// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"time"
)

// leaseSlack is how much earlier than promised a lease may end: a former leader may
// acknowledge a renewal that the next leader does not know.
const leaseSlack = 5 * time.Second

// A leased key belongs to a lease. Times are since some start.
type leased struct {
	key     string
	ttl     time.Duration
	alive   time.Duration // when the last acknowledged renewal was sent
	revoked bool          // a revocation was acknowledged
}

// check returns an error if the lease does not allow the result of a read that ended at a
// time.
func (l leased) check(found bool, ended time.Duration) error {
	switch {
	case l.revoked && found:
		return fmt.Errorf("%s is there, and its lease was revoked", l.key)
	case !l.revoked && !found && ended < l.alive+l.ttl-leaseSlack:
		return fmt.Errorf("%s is gone, and its lease of %s was kept alive %s before", l.key, l.ttl, ended-l.alive)
	}
	return nil
}
