// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
)

// otherPath is what a person can do about a log of another history.
const otherPath = "name another path, so that nobody restores a mix of both"

// mayBeginAnew returns recorder.ErrOther if a log must not begin again beside the one in the store. last
// is the end of that one, and revision where etcd is. Only etcd's own revisions show that both are of one
// history. So a log that was refused once stays refused until they do, however far etcd is by then.
func (c *changeLog) mayBeginAnew(place *location.Location, newest changelog.Key, last, revision int64) error {
	switch {
	case newest.Text == "":
		return nil
	case revision < last:
		return behindItsLog(last)
	case strings.HasPrefix(c.otherHistory(), place.Path(changelog.ClusterPrefix(place.Key, newest.Cluster))):
		return fmt.Errorf("%w: the operator has seen that etcd has other data than the log at %s, under the same ID of the cluster: %s", recorder.ErrOther, c.otherHistory(), otherPath)
	}
	return nil
}

func behindItsLog(last int64) error {
	return fmt.Errorf("%w: etcd has not reached revision %d, the last of the log under the same ID of the cluster: %s", recorder.ErrOther, last, otherPath)
}

// refuse notes the log of another history.
func (c *changeLog) refuse(place *location.Location, newest changelog.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.other = place.Path(newest.Text)
}

// otherHistory is the end of a log of another history; "": none is known. Any goroutine may call it.
func (c *changeLog) otherHistory() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.other
}
