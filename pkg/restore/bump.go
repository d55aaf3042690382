// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// highestRevision is up to where a restored cluster may begin. etcd's revisions end at
// 2^63: beyond it, etcdutl restores without a word, and no member ever starts.
const highestRevision = 1 << 62

// bumpFits reports whether the revision of the backup can be raised by so much.
func bumpFits(b *api.RestoredBackup, bump int64) error {
	if bump == 0 || b.EtcdRevision <= highestRevision-bump {
		return nil
	}
	return fmt.Errorf("%w: its revision is %d, and raised by %d it would come too close to the last one that etcd knows: give a smaller spec.bumpRevision", errUnfit, b.EtcdRevision, bump)
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
	known, begins := from.EtcdRevision+from.BumpRevision, b.EtcdRevision+bump
	if begins > known {
		return ""
	}
	return fmt.Sprintf("the cluster that is replaced began at revision %d, by a restore before with bumpRevision %d, and has counted on; this restore begins at %d, which clients that watch may know with other content: until the first member serves, raise spec.bumpRevision, for instance to %d",
		known, from.BumpRevision, begins, min(bump+2*from.BumpRevision, api.MaxBumpRevision))
}
