// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

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
// which no backup is left. The end of a log stays: the next recording continues it. What the store
// keeps of the rest is no part of the log any more: no backup precedes it. The error is the first refusal.
func (t *tidying) trimLog(ctx context.Context, place *location.Location, result *tidied) error {
	oldest := map[string]int64{} // of each cluster that has a backup
	for key, from := range result.owned {
		revision, _, ours := backupobject.ParseKey(place.Key, key)
		if !ours || !from.mine || from.cluster == "" {
			continue
		}
		if known, there := oldest[from.cluster]; !there || revision < known {
			oldest[from.cluster] = revision
		}
	}
	if len(oldest) == 0 {
		return nil
	}
	var refusal error
	refused := 0 // in a row
	for k, err := range surplusSegments(ctx, place, oldest) {
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

// surplusSegments lists what no backup needs, in the order of the keys. oldest is the revision of the oldest
// backup of each cluster that has one. It lists all of the log for each chunk.
func surplusSegments(ctx context.Context, place *location.Location, oldest map[string]int64) iter.Seq2[changelog.Key, error] {
	return func(yield func(changelog.Key, error) bool) {
		for after := ""; ; {
			chunk, ends, err := surplusAfter(ctx, place, oldest, after)
			if err != nil {
				yield(changelog.Key{}, fmt.Errorf("look for the log of changes: %w", err))
				return
			}
			for _, k := range chunk {
				end, there := ends[k.Cluster]
				if !(there && k.Last == end) && !yield(k, nil) {
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

// surplusAfter returns the first chunk after a key, and where the logs of the clusters end that have a backup.
func surplusAfter(ctx context.Context, place *location.Location, oldest map[string]int64, after string) (chunk []changelog.Key, ends map[uint64]int64, err error) {
	ends = map[uint64]int64{}
	for k, err := range segments(ctx, place) {
		if err != nil {
			return nil, nil, err
		}
		needed, there := oldest[fmt.Sprintf("%016x", k.Cluster)]
		if there {
			ends[k.Cluster] = max(ends[k.Cluster], k.Last)
		}
		if k.Text <= after || there && k.Last >= needed {
			continue
		}
		if chunk = append(chunk, k); len(chunk) == 2*trimChunk {
			chunk = firstOf(chunk)
		}
	}
	return firstOf(chunk), ends, nil
}

func firstOf(keys []changelog.Key) []changelog.Key {
	slices.SortFunc(keys, func(a, b changelog.Key) int { return strings.Compare(a.Text, b.Text) })
	return keys[:min(len(keys), trimChunk)]
}
