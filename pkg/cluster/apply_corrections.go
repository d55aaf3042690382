// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"time"
)

const (
	// fightAfter is how many corrections of the same object in a row count as a fight with
	// somebody who undoes each. With its creation, and an attempt before the cache shows that, an
	// object costs at most six writes in the first minute.
	fightAfter = 3
	// fightPause is the least time between two attempts in such a fight.
	fightPause = time.Minute
)

// corrections counts the corrections of the same object in a row.
type corrections map[string]correctionCount

type correctionCount struct {
	times int
	last  time.Time
}

// pauseAfterCorrection is the pause after a correction. An edit of the spec does not end a
// fight, and does not reset the count.
func (c *Cluster) pauseAfterCorrection(what string) time.Duration {
	now := c.cfg.Clock.Now()
	maps.DeleteFunc(c.corrections, func(_ string, u correctionCount) bool { return now.Sub(u.last) > 2*fightPause })
	u := correctionCount{times: c.corrections[what].times + 1, last: now}
	c.corrections[what] = u
	if u.times > fightAfter {
		return fightPause
	}
	return correctionPause
}

// forThisSpec names a correction for one generation of the spec. After an edit of the spec, the
// first correction need not wait.
func (c *Cluster) forThisSpec(correction string) string {
	return fmt.Sprintf("%s to generation %d", correction, c.obj.Generation)
}
