// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The cache of pods was ahead of the cache of claims. Each new pod looked like one without a
// volume, and the operator deleted and recreated it 40 times a second.
func TestAClaimThatTheCacheMissesIsAskedFor(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	pod, err := manifest.BuildPod(obj, manifest.MemberPod{Name: "a", Version: "3.6.16", Volume: true}, manifest.CertForms{}, "operator")
	if err != nil {
		t.Fatal(err)
	}
	w.makePod(pod)
	claim, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), manifest.BuildVolume(obj, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.watch()
	if err := w.volumes.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := o.Volume("a"); v == nil || v.UID != claim.UID {
		t.Errorf("volumes %v", o.Volumes)
	}
	// Where there is none, the pod is as it looks.
	if err := w.kube.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if o, err = c.observe(t.Context()); err != nil || len(o.Volumes) != 0 {
		t.Errorf("volumes %v, error %v", o.Volumes, err)
	}
}
