// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// trimRefusals is after how many refusals in a row trimming ends. A hold keeps some segments. A lock
// by age keeps all that are younger than the first one.
const trimRefusals = 100

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
	var surplus []changelog.Key
	ends := map[uint64]int64{} // of the clusters that have a backup
	for k, err := range segments(ctx, place) {
		if err != nil {
			return fmt.Errorf("look for the log of changes: %w", err)
		}
		needed, there := oldest[fmt.Sprintf("%016x", k.Cluster)]
		if there {
			ends[k.Cluster] = max(ends[k.Cluster], k.Last)
		}
		if !there || k.Last < needed {
			surplus = append(surplus, k)
		}
	}
	var refusal error
	refused := 0 // in a row
	for _, k := range surplus {
		if end, there := ends[k.Cluster]; there && k.Last == end {
			continue
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
