// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Somebody deleted the claims of running members. Nothing said so until the pods ended, and the data with them.
func TestTheStatusNamesVolumesThatGoWithTheirPods(t *testing.T) {
	for name, c := range map[string]struct {
		world, want string
	}{
		"two of three": {`
cluster
volume a deleting
volume b
volume c deleting
member a leader claimed
member b claimed
member c claimed`, "volumes of running members are being deleted: a, c. Kubernetes deletes the data"},
		"the only one": {`
cluster size=1
volume a deleting
member a leader claimed`, "Raise spec.size to 3 first"},
		"that of a pod that somebody has deleted too": {`
cluster
volume a deleting
volume b
volume c
member a leader claimed
member b claimed
member c claimed deleting`, "volumes of running members are being deleted: a. "},
		"that of no member": {`
cluster size=1
volume a
volume b deleting
member a leader claimed`, ""},
		"all, with their cluster": {`
cluster size=1 ending
volume a deleting
member a leader claimed`, ""},
	} {
		st := statusIn(t, c.world)
		if !strings.Contains(st.Reason, c.want) || c.want == "" && st.Reason != "" {
			t.Errorf("%s: status.reason is %q", name, st.Reason)
		}
		stalled := st.Condition(api.ClusterConditionStalled)
		if is := stalled.Status == corev1.ConditionTrue; is != (c.want != "") || is && stalled.Reason != "VolumesDeleted" {
			t.Errorf("%s: Stalled is %+v", name, stalled)
		}
	}
}
