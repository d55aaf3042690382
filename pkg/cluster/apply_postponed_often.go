// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"time"
)

const (
	// undoneOften is how often the same may be put right in a row until that counts as a
	// fight with somebody who undoes it each time.
	undoneOften = 5
	// fightPause is the least time between two attempts in such a fight.
	fightPause = time.Minute
)

// undone counts how often the same was put right in a row.
type undone map[string]undoneCount

type undoneCount struct {
	times int
	last  time.Time
}

// pauseAfterMending is how long a mending that was just made is not repeated. An edit of
// the spec begins the count anew.
func (c *Cluster) pauseAfterMending(what string) time.Duration {
	now := c.cfg.Clock.Now()
	maps.DeleteFunc(c.undone, func(_ string, u undoneCount) bool { return now.Sub(u.last) > 2*fightPause })
	key := fmt.Sprintf("%s of generation %d", what, c.obj.Generation)
	u := undoneCount{times: c.undone[key].times + 1, last: now}
	c.undone[key] = u
	if u.times > undoneOften {
		return fightPause
	}
	return mendPause
}
