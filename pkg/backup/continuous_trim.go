// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

const (
	// trimRefusals is after how many refusals in a row trimming ends. A hold keeps some segments. A lock
	// by age keeps all that are younger than the first one.
	trimRefusals = 100
	// trimChunk is how many segments are known at once. After a long time without a backup, millions
	// become surplus, and the operator has 512 MiB.
	trimChunk = 20_000
)

// trimLog deletes what no backup needs any more. A restore follows the log from a backup on.
// So all up to the oldest backup of a cluster is of no use, and the whole log of a cluster of
// which no backup is left, but not of the latest or a recent one: its backup may be one that the store does
// not list yet. The end of a log stays: the next recording continues it. What the store keeps of the rest
// is no part of the log any more: no backup precedes it. The error is the first refusal.
func (t *tidying) trimLog(ctx context.Context, place *location.Location, result *tidied) error {
	oldest := map[string]base{} // of each cluster that has a backup
	for key, from := range result.owned {
		revision, begun, ours := backupobject.ParseKey(place.Key, key)
		if !ours || !from.mine || from.cluster == "" {
			continue
		}
		b := base{revision, begun}
		if known, there := oldest[from.cluster]; !there || b.compare(known) < 0 {
			oldest[from.cluster] = b
		}
	}
	if len(oldest) == 0 {
		return nil
	}
	var refusal error
	refused := 0 // in a row
	for k, err := range surplusSegments(ctx, place, oldest, t.cfg.Clock.Now()) {
		if err != nil {
			return err
		}
		if err := t.look(ctx); err != nil {
			return err
		}
		if t.readers.follows(k) {
			continue // since now
		}
		mine, err := t.deleteMine(ctx, place, k.Text)
		if err != nil && !refusesOne(err) {
			return err
		}
		if err != nil {
			refusal = cmp.Or(refusal, err)
			if refused++; refused == trimRefusals {
				break
			}
			continue
		}
		refused = 0
		if mine {
			result.trimmed++
		}
	}
	if result.trimmed > 0 {
		t.log.WithField("segments", result.trimmed).Info("deleted what no backup needs of the log of changes")
	}
	return refusal
}

// base is a backup that a log continues.
type base struct {
	revision int64
	begun    time.Time
}

func (b base) compare(other base) int {
	return cmp.Or(cmp.Compare(b.revision, other.revision), b.begun.Compare(other.begun))
}

// needs reports whether a restore that begins with the backup may need a segment. Without changes, one comes
// once a minute at the revision of all backups. Those from before the oldest one date nothing of it.
func (b base) needs(k changelog.Key) bool {
	if k.Last == b.revision && k.First > k.Last {
		return b.begun.Sub(k.Until) <= logOverdue // one at the least that comes before
	}
	return k.Last >= b.revision
}

// isEnd reports whether a segment shows where a log ends: by its changes, or by the latest time. The end is the
// latest one of those with the last revision.
func isEnd(k, end changelog.Key) bool {
	return k.Last == end.Last && (k.First <= k.Last || k.Until.Equal(end.Until))
}

// surplusSegments lists what no backup needs, in the order of the keys. oldest is the oldest
// backup of each cluster that has one. It lists all of the log for each chunk.
func surplusSegments(ctx context.Context, place *location.Location, oldest map[string]base, now time.Time) iter.Seq2[changelog.Key, error] {
	return func(yield func(changelog.Key, error) bool) {
		for after := ""; ; {
			chunk, last, latest, err := surplusAfter(ctx, place, oldest, after)
			if err != nil {
				yield(changelog.Key{}, fmt.Errorf("look for the log of changes: %w", err))
				return
			}
			for _, k := range chunk {
				end, there := last[k.Cluster]
				isKept := there && isEnd(k, end) || !there && isRecent(k.Cluster, latest, now)
				if !isKept && !yield(k, nil) {
					return
				}
			}
			if len(chunk) < trimChunk {
				return
			}
			after = chunk[len(chunk)-1].Text
		}
	}
}

// isRecent reports whether the log of a cluster has the latest segment of all, or one of the last hour. latest
// are the times of the latest segments.
func isRecent(cluster uint64, latest map[uint64]time.Time, now time.Time) bool {
	ofAll := slices.MaxFunc(slices.Collect(maps.Values(latest)), time.Time.Compare)
	if ofAll.Before(now) {
		now = ofAll
	}
	return now.Sub(latest[cluster]) <= listLag
}

// surplusAfter returns the first chunk after a key, where the logs of the clusters end that have a backup, and
// the times of the latest segments of all clusters.
func surplusAfter(ctx context.Context, place *location.Location, oldest map[string]base, after string) (chunk []changelog.Key, last map[uint64]changelog.Key, latest map[uint64]time.Time, err error) {
	last, latest = map[uint64]changelog.Key{}, map[uint64]time.Time{}
	for k, err := range segments(ctx, place) {
		if err != nil {
			return nil, nil, nil, err
		}
		if k.Until.After(latest[k.Cluster]) {
			latest[k.Cluster] = k.Until
		}
		from, there := oldest[fmt.Sprintf("%016x", k.Cluster)]
		if end := last[k.Cluster]; there && (end.Text == "" || cmp.Or(cmp.Compare(k.Last, end.Last), k.Until.Compare(end.Until)) > 0) {
			last[k.Cluster] = k
		}
		if k.Text <= after || there && from.needs(k) {
			continue
		}
		if chunk = append(chunk, k); len(chunk) == 2*trimChunk {
			chunk = firstOf(chunk)
		}
	}
	return firstOf(chunk), last, latest, nil
}

func firstOf(keys []changelog.Key) []changelog.Key {
	slices.SortFunc(keys, func(a, b changelog.Key) int { return strings.Compare(a.Text, b.Text) })
	return keys[:min(len(keys), trimChunk)]
}
