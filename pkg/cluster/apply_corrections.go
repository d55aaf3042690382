// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"time"
)

const (
	// fightAfter is how often the same may be put right in a row until that counts as a
	// fight with somebody who undoes it each time.
	fightAfter = 5
	// fightPause is the least time between two attempts in such a fight.
	fightPause = time.Minute
)

// corrections counts how often the same was put right in a row.
type corrections map[string]correctionCount

type correctionCount struct {
	times int
	last  time.Time
}

// pauseAfterCorrection is how long a correction that was just made is not repeated. An edit of
// the spec begins the count anew.
func (c *Cluster) pauseAfterCorrection(what string) time.Duration {
	now := c.cfg.Clock.Now()
	maps.DeleteFunc(c.corrections, func(_ string, u correctionCount) bool { return now.Sub(u.last) > 2*fightPause })
	key := fmt.Sprintf("%s of generation %d", what, c.obj.Generation)
	u := correctionCount{times: c.corrections[key].times + 1, last: now}
	c.corrections[key] = u
	if u.times > fightAfter {
		return fightPause
	}
	return correctionPause
}
