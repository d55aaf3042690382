// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"testing"
	"time"

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

// The cache hides volumes without their labels. Once all pods were gone, the operator said that all
// members and their data were gone, and that somebody should delete the EtcdCluster. Kubernetes would
// have deleted the volumes with it.
func TestVolumesThatLostTheirLabelsAreNotTakenForLost(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	obj.Status.Phase, obj.Status.CurrentVersion = api.ClusterPhaseRunning, "3.6.16"
	obj.Status.Record = &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}, {ID: "b", Name: "b"}}}
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	claims := w.kube.CoreV1().PersistentVolumeClaims("ns")
	for _, name := range []string{"a", "b"} {
		claim := manifest.BuildVolume(obj, name)
		claim.Labels = map[string]string{"note": "of the user"}
		if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // the cache does not show them yet
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Volumes) != 2 {
			t.Errorf("volumes %v", o.Volumes)
		}
		clock.Step(time.Second)
	}
	for _, name := range []string{"a", "b"} {
		claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := manifest.BuildVolume(obj, name).Labels
		want["note"] = "of the user"
		if !maps.Equal(claim.Labels, want) {
			t.Errorf("the labels are %v, want %v", claim.Labels, want)
		}
	}
	if n := w.count("patch", "persistentvolumeclaims"); n != 2 || !w.Told("PersistentVolumeClaim a was edited") {
		t.Errorf("%d patches, events %q", n, w.Events())
	}
}

// A member without a volume costs one request a minute.
func TestAVolumeThatDoesNotExistIsRarelyAskedFor(t *testing.T) {
	obj := testCluster()
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Status.Record = &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}}}
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	for range 30 {
		if o, err := c.observe(t.Context()); err != nil || len(o.Volumes) != 0 {
			t.Fatalf("volumes %v, error %v", o.Volumes, err)
		}
		clock.Step(time.Second)
	}
	if n := w.count("get", "persistentvolumeclaims"); n != 1 {
		t.Errorf("%d requests", n)
	}
}
