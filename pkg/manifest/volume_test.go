// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestWhereAMemberKeepsItsData(t *testing.T) {
	for name, tc := range map[string]struct {
		policy api.PodPolicy
		want   string
	}{
		"by default":   {api.PodPolicy{}, "emptyDir"},
		"in memory":    {api.PodPolicy{Tmpfs: true}, "emptyDir in Memory"},
		"on a volume":  {api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")}, "claim c-joiner"},
		"never both":   {api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi"), Tmpfs: true}, "claim c-joiner"},
		"empty, on it": {api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}, "claim c-joiner"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			switch v := joiner(clusterWith("3.6.16", &tc.policy)).build(t).Spec.Volumes[0]; {
			case v.PersistentVolumeClaim != nil:
				got = "claim " + v.PersistentVolumeClaim.ClaimName
			case v.EmptyDir != nil && v.EmptyDir.Medium != "":
				got = "emptyDir in " + string(v.EmptyDir.Medium)
			case v.EmptyDir != nil:
				got = "emptyDir"
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestAVolumeBelongsToItsPodsMemberAndCluster(t *testing.T) {
	obj := withEveryField(func(p *api.PodPolicy) {
		p.PersistentVolumeClaimSpec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	pod, volume := joiner(obj).build(t), BuildVolume(obj, "c-joiner")
	if volume.Name != pod.Name || volume.Namespace != pod.Namespace || !maps.Equal(volume.Labels, pod.Labels) || !metav1.IsControlledBy(volume, obj) {
		t.Errorf("the volume %+v is not that of the pod %+v", volume.ObjectMeta, pod.ObjectMeta)
	}
	if got := volume.Spec.AccessModes; len(got) != 1 || got[0] != corev1.ReadWriteOncePod {
		t.Errorf("access modes %v", got)
	}
}
