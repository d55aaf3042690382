// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// A deletion that lasts, an edit of the EtcdCluster, and a cache that is behind end a
// pass. None of them is a failure.
func TestWhatEndsAPassIsNotAFailure(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	ending := manifest.BuildClientService(c.obj)
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: noon}, []string{"somebody/s"}
	w.makeService(ending)
	newer := c.obj.DeepCopy()
	newer.Status = runningStatus()
	for name, err := range map[string]error{
		"a deletion":         c.apply(t.Context(), plan.CreateService{Client: true}),
		"another's status":   c.adopt(newer),
		"a pod that is gone": c.apply(t.Context(), plan.SetMetadata{Pod: "gone"}),
	} {
		if err == nil || !isNotYet(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if isNotYet(errStatusNotWritten) || isNotYet(errNoQuorum) {
		t.Error("a failure counts as none")
	}
}
