// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// newest returns the newest segment of a cluster, the latest one beside it that ends there too, and whether
// this EtcdBackup has stored the newest; zero: there is none. The error is errShared if another one
// records at the path, also another cluster.
func (c *changeLog) newest(ctx context.Context, place *location.Location, cluster uint64) (newest, beside changelog.Key, mine bool, err error) {
	var latest changelog.Key
	for k, err := range segments(ctx, place) {
		if err != nil {
			return changelog.Key{}, changelog.Key{}, false, fmt.Errorf("look for the log of changes: %w", err)
		}
		if latest.Text == "" || k.Until.After(latest.Until) {
			latest = k
		}
		if k.Cluster != cluster || newest.Text != "" && k.Last < newest.Last {
			continue
		}
		// Of those with the same end, one that holds it.
		switch {
		case newest.Text == "" || k.Last > newest.Last:
			newest, beside = k, changelog.Key{}
			continue
		case k.First < newest.First:
			newest, k = k, newest
		}
		if beside.Text == "" || k.Until.After(beside.Until) {
			beside = k
		}
	}
	if latest.Text == "" {
		return newest, beside, true, nil
	}
	last, err := c.ownerOf(ctx, place, latest)
	if err == nil {
		err = c.mayRecord(ctx, last)
	}
	if err != nil || newest.Text == "" || newest.Text == latest.Text {
		return newest, beside, c.owns(last), err
	}
	o, err := c.ownerOf(ctx, place, newest)
	return newest, beside, c.owns(o), err
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
	log := changelog.NewIndex(cluster)
	for k, err := range segments(ctx, place) {
		if err != nil {
			return fmt.Errorf("look for the log of changes: %w", err)
		}
		if k.Cluster == cluster && k.Last >= newest {
			log.Add(k, 0)
		}
	}
	var end changelog.Mark
	for m := range log.Chain(newest) {
		end = m
	}
	further := end.Last > newest
	if further {
		o, err := c.ownerOf(ctx, place, log.Key(place.Key, end))
		if err != nil {
			return err
		}
		further = c.owns(o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endUnknown = false; further {
		c.progress.cluster, c.progress.newest, c.progress.until, c.progress.found = cluster, end.Last, end.Until(), true
	}
	return nil
}
