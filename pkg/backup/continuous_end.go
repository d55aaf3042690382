// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

const (
	// longLog is after how many listed segments a look for the end of a log begins near the known one. To
	// list a log of a month takes minutes, in which nothing is recorded.
	longLog = 20_000
	// nearBefore and nearAfter are the revisions around the known end of a log at which segments near it
	// begin. nearSpan bounds how far etcd may be from there, and so the number of lists.
	nearBefore, nearAfter, nearSpan = 50_000, 100_000, 1_000_000
)

// ends is what a list of segments shows of the end of a cluster's log.
type ends struct {
	cluster uint64
	now     time.Time
	// latest is that of all clusters, ahead the latest one of an operator whose clock was ahead, newest that of
	// this cluster, and beside the latest one beside newest that ends there too; zero: there is none.
	latest, ahead, newest, beside changelog.Key
}

func (e *ends) add(k changelog.Key) {
	latest := &e.latest
	if k.Until.Sub(e.now) > logOverdue {
		latest = &e.ahead
	}
	if latest.Text == "" || k.Until.After(latest.Until) {
		*latest = k
	}
	if k.Cluster != e.cluster || e.newest.Text != "" && k.Last < e.newest.Last {
		return
	}
	// Of those with the same end, one that holds it.
	switch {
	case e.newest.Text == "" || k.Last > e.newest.Last:
		e.newest, e.beside = k, changelog.Key{}
		return
	case k.First < e.newest.First:
		e.newest, k = k, e.newest
	}
	if e.beside.Text == "" || k.Until.After(e.beside.Until) {
		e.beside = k
	}
}

// newest returns the newest segment of a cluster, the latest one beside it that ends there too, and whether
// this EtcdBackup has stored the newest; zero: there is none. The error is errShared if another one
// records at the path, also another cluster.
func (c *changeLog) newest(ctx context.Context, place *location.Location, at etcd.Position) (newest, beside changelog.Key, mine bool, err error) {
	all, listed := ends{cluster: at.ClusterID, now: c.cfg.Clock.Now()}, 0
	for k, err := range segments(ctx, place) {
		if err != nil {
			return changelog.Key{}, changelog.Key{}, false, fmt.Errorf("look for the log of changes: %w", err)
		}
		all.add(k)
		if listed++; listed != longLog {
			continue
		}
		if near, shown, err := c.nearEnd(ctx, place, at); shown || err != nil {
			return near.newest, near.beside, true, err
		}
	}
	isLatest := all.newest.Text == all.latest.Text
	for _, k := range []changelog.Key{all.ahead, all.latest} {
		if k.Text == "" {
			continue
		}
		last, err := c.ownerOf(ctx, place, k)
		if err == nil {
			err = c.mayRecord(ctx, last)
		}
		if err != nil || isLatest && k.Text == all.latest.Text {
			return all.newest, all.beside, c.owns(last), err
		}
	}
	if all.newest.Text == "" {
		return all.newest, all.beside, true, nil
	}
	o, err := c.ownerOf(ctx, place, all.newest)
	return all.newest, all.beside, c.owns(o), err
}

// nearEnd looks for the end of a log among the segments near what the status says of it. shown is false if
// they do not show it: the whole list does. They show it if this EtcdBackup has stored one just now. No other
// EtcdBackup has begun to record since, also for another cluster: mayRecord would have refused it.
func (c *changeLog) nearEnd(ctx context.Context, place *location.Location, at etcd.Position) (near ends, shown bool, err error) {
	cluster, known, is, err := c.knownEnd()
	if err != nil || !is || cluster != at.ClusterID || max(known-at.Revision, at.Revision-known) > nearSpan {
		return ends{}, false, nil // the whole list shows it
	}
	near = ends{cluster: cluster, now: c.cfg.Clock.Now()}
	for k, err := range segmentsNear(ctx, place, cluster, min(known, at.Revision), max(known, at.Revision)) {
		if err != nil {
			return ends{}, false, fmt.Errorf("look for the end of the log of changes: %w", err)
		}
		near.add(k)
	}
	// Without a change, the newest one would not show whether etcd still has the same history.
	if end := near.newest; end.Text == "" || near.latest.Text == "" || end.Last < known || end.First > end.Last || c.cfg.Clock.Since(near.latest.Until) > logOverdue {
		return ends{}, false, nil
	}
	for _, k := range []changelog.Key{near.latest, near.newest} {
		switch o, err := c.ownerOf(ctx, place, k); {
		case err != nil:
			return ends{}, false, err
		case !c.owns(o):
			return ends{}, false, nil
		}
	}
	return near, true, nil
}

// readEnd reads the newest segment. If that is damaged and another log has begun after it, the segment
// beside it is the end: that log does not need the damaged one.
func readEnd(ctx context.Context, place *location.Location, newest, beside changelog.Key) (changelog.Key, *changelog.Segment, error) {
	if newest.Text == "" {
		return newest, nil, nil
	}
	end, err := readSegment(ctx, place, newest)
	if errors.Is(err, changelog.ErrDamaged) && beside.Text != "" {
		if s, failure := readSegment(ctx, place, beside); failure == nil && s.Trail != nil && s.Trail.Origin == newest.Last {
			return beside, s, nil
		}
	}
	return newest, end, err
}

// isEndUnknown reports whether the store may have more than the status says.
func (c *changeLog) isEndUnknown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endUnknown
}

// loseEnd notes that the store may have a segment whose answer is lost.
func (c *changeLog) loseEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endUnknown = true
}

// knownEnd is how far the log goes by what was stored, or else by the status. false: there is no log.
func (c *changeLog) knownEnd() (cluster uint64, newest int64, known bool, err error) {
	if p := c.seen(); p.stored {
		return p.cluster, p.newest, true, nil
	}
	if c.status == nil || c.status.ClusterID == "" {
		return 0, 0, false, nil
	}
	if cluster, err = strconv.ParseUint(c.status.ClusterID, 16, 64); err != nil {
		return 0, 0, false, fmt.Errorf("read status.continuous.clusterID: %w", err)
	}
	return cluster, c.status.NewestRevision, true, nil
}

// findEnd looks how far the store continues what is known of the log. Without a quorum, no recording begins
// that would see it, and a way out restores no more than the status says.
func (c *changeLog) findEnd(ctx context.Context, place *location.Location) error {
	cluster, newest, known, err := c.knownEnd()
	if !known {
		return err
	}
	end, err := furthest(ctx, place, cluster, newest)
	if err != nil {
		return fmt.Errorf("look for the log of changes: %w", err)
	}
	further := end.Last > newest
	if further {
		o, err := c.ownerOf(ctx, place, end)
		if err != nil {
			return err
		}
		further = c.owns(o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endUnknown = false; further {
		c.progress.cluster, c.progress.newest, c.progress.until, c.progress.found = cluster, end.Last, end.Until, true
	}
	return nil
}

// furthest returns the last segment of those that continue a log after its newest known revision; zero: there is
// none.
func furthest(ctx context.Context, place *location.Location, cluster uint64, newest int64) (changelog.Key, error) {
	all, listed := changelog.NewIndex(cluster), 0
	for k, err := range segments(ctx, place) {
		if err != nil {
			return changelog.Key{}, err
		}
		if k.Cluster == cluster && k.Last >= newest {
			all.Add(k, 0)
		}
		if listed++; listed != longLog {
			continue
		}
		near := changelog.NewIndex(cluster)
		for k, err := range segmentsNear(ctx, place, cluster, newest, newest) {
			if err != nil {
				return changelog.Key{}, err
			}
			if k.Last >= newest {
				near.Add(k, 0)
			}
		}
		if end := endOf(near, place, newest); end.Last < newest+nearAfter { // what continued it would be near, too
			return end, nil
		}
	}
	return endOf(all, place, newest), nil
}

func endOf(log *changelog.Index, place *location.Location, from int64) (end changelog.Key) {
	for m := range log.Chain(from) {
		end = log.Key(place.Key, m)
	}
	return end
}
