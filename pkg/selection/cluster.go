// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// clusterOf returns the ID of the cluster that a backup comes from; 0: unknown.
func clusterOf(object store.Object) uint64 {
	id, err := strconv.ParseUint(object.Metadata[backupobject.MetaCluster], 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// otherCluster returns why a backup does not come from the cluster that is asked for; nil: it does.
func (f finder) otherCluster(object store.Object) error {
	switch id := clusterOf(object); {
	case f.cluster == 0 || id == f.cluster:
		return nil
	case id == 0:
		return fmt.Errorf("its metadata does not say which cluster it comes from, and one of the cluster %016x is needed", f.cluster)
	default:
		return fmt.Errorf("it comes from the cluster %016x, and one of the cluster %016x is needed", id, f.cluster)
	}
}

// alsoIn names another cluster whose log has the revision or the moment that is asked for, if nobody
// has said which cluster is meant; "": there is none.
func (f finder) alsoIn(chosen string) string {
	if f.rival != "" {
		return f.rival
	}
	if f.log == nil || f.cluster != 0 {
		return ""
	}
	for _, id := range slices.Sorted(maps.Keys(f.log.of)) {
		other := fmt.Sprintf("%016x", id)
		if other == chosen {
			continue
		}
		for m := range f.log.of[id].Marks() {
			if m.First <= f.revision && f.revision <= m.Last {
				return f.instead(id, fmt.Sprintf("has revision %d", f.revision))
			}
		}
	}
	return ""
}

// instead says how to restore another cluster, whose log has what is asked for.
func (f finder) instead(id uint64, has string) string {
	return fmt.Sprintf("%s: the log of changes of another cluster %s too: to restore that one, set spec.clusterID: %016x", f.place.Path(changelog.ClusterPrefix(f.place.Key, id)), has, id)
}
