// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
)

// point is the revision that a test restores from a backup and the log of changes; zero: it
// restores the newest backup alone.
type point struct {
	revision int64
	// seed is that of the choice among the revisions from low to high.
	seed, low, high int64
}

// pointOf chooses a revision at random. The seed is the moment in milliseconds. owned is what is
// known of the backups in the store.
func pointOf(obj *api.EtcdBackup, st *api.BackupStatus, owned map[string]origin, now time.Time) point {
	log := st.Continuous
	if obj.Spec.Continuous == nil || log == nil || log.StartDate == nil || log.NewestRevision == 0 || needsBase(obj, st, now) {
		return point{}
	}
	p := point{seed: now.UnixMilli(), low: st.EtcdRevision, high: max(st.EtcdRevision, log.NewestRevision)}
	var bases []int64
	for key, from := range owned {
		path := key[:max(0, strings.LastIndex(key, "_v"))]
		revision, _, dated := backupobject.ParseKey(path, key)
		// With one of the schedule, the retention may delete several bases.
		if dated && from.mine && !from.uncertain && !from.base && from.cluster == log.ClusterID && revision >= log.StartRevision-1 {
			bases = append(bases, revision)
		}
	}
	// The retention may delete the oldest one during the test.
	if slices.Sort(bases); len(bases) > 2 {
		p.low = min(p.low, bases[1])
	}
	p.revision = choose(p)
	return p
}

func choose(p point) int64 {
	rng := rand.New(rand.NewPCG(uint64(p.seed), 0)) // no secret; the bits
	return p.low + rng.Int64N(p.high-p.low+1)
}
