// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// highestRevision is up to where a restored cluster may begin. etcd's revisions end at
// 2^63: beyond it, etcdutl restores without a word, and no member ever starts.
const highestRevision = 1 << 62

// bumpFits reports whether the revision of the backup can be raised by so much.
func bumpFits(b *api.RestoredBackup, bump int64) error {
	if bump == 0 || begins(b) <= highestRevision-bump {
		return nil
	}
	return fmt.Errorf("%w: its revision is %d, and raised by %d it would come too close to the last one that etcd knows: give a smaller spec.bumpRevision", errUnfit, begins(b), bump)
}

// begins is the revision that is restored, before it is raised.
func begins(b *api.RestoredBackup) int64 { return cmp.Or(b.Revision, b.EtcdRevision) }

// aboveBackup is how far above the backup, or the log after it, a restore of a certain revision
// begins, where clients may know later revisions: room for writes since the backup.
const aboveBackup = 1_000_000_000

// bumpFor is how much to raise the revision of a backup for an EtcdCluster. Whoever asks
// for an earlier revision of a cluster that has clients wants them to notice. known is the last
// revision that they are known to have seen, which a restore before may have raised.
func bumpFor(spec *api.RestoreSpec, b *api.RestoredBackup, m manifest, known int64) int64 {
	if spec.BumpRevision > 0 || b.Revision == 0 || spec.ClusterTemplate != nil {
		return spec.BumpRevision
	}
	cluster, err := m.spec()
	if err != nil {
		return 0
	}
	if v, err := etcd.ParseVersion(cluster.EffectiveVersion()); err != nil || !v.HasBumpRevision() {
		return 0
	}
	return min(max(b.EtcdRevision-b.Revision, known-b.Revision, 0)+aboveBackup, api.MaxBumpRevision)
}

// knownRevision is the last revision that clients of the replaced EtcdCluster have seen, as far as is
// on record; 0: none is.
func (o *observation) knownRevision() (known int64) {
	if c := o.cluster; c != nil && !c.createdBy(o.obj.UID) {
		if c.status.Record != nil {
			known = c.status.Record.Revision
		}
		if from := c.status.RestoredFrom; from != nil {
			known = max(known, beganAt(from))
		}
	}
	// The choice before an edit was above what was known then.
	if b := o.obj.Status.Backup; committed(&o.obj.Status) && b.BumpRevision > 0 {
		known = max(known, begins(b)+b.BumpRevision-aboveBackup)
	}
	return known
}

// beganAt is the revision with which a restored cluster began.
func beganAt(from *api.RestoredFrom) int64 {
	return cmp.Or(from.Revision, from.EtcdRevision) + from.BumpRevision
}

// bumpOf is how much a restore raises the revision.
func bumpOf(obj *api.EtcdRestore) int64 {
	if b := obj.Status.Backup; b.Revision > 0 {
		return b.BumpRevision
	}
	return obj.Spec.BumpRevision
}

// mayRepeat reports that the restored cluster begins at revisions that clients know with
// other content, from a restore before that has raised the revision; "": it does not,
// as far as is on record.
func mayRepeat(old *unstructured.Unstructured, b *api.RestoredBackup, bump int64) string {
	var cluster api.EtcdCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old.Object, &cluster); err != nil {
		return ""
	}
	from := cluster.Status.RestoredFrom
	if from == nil || from.BumpRevision == 0 {
		return "" // nobody cares, or it was never raised
	}
	known, first := beganAt(from), begins(b)+bump
	if first > known {
		return ""
	}
	return fmt.Sprintf("the cluster that is replaced began at revision %d, by a restore before with bumpRevision %d, and has counted on; this restore begins at %d, which clients that watch may know with other content: until the first member serves, raise spec.bumpRevision, for instance to %d",
		known, from.BumpRevision, first, min(bump+2*from.BumpRevision, api.MaxBumpRevision))
}
