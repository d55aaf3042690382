// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// An operator that takes over may have an old cache, in which the phase is still Creating. The
// pod that it takes for a seed that never served may hold all data.
func TestTheSeedOfAClusterThatRunsByNowIsLeftAlone(t *testing.T) {
	var never corev1.ContainerState
	for name, tt := range map[string]struct {
		version  string // of the seed's pod
		restored bool
		change   func(*corev1.Pod)
	}{
		"its image is unavailable": {"3.6.99", false, func(p *corev1.Pod) {
			kubelet(p, ended(0, ""), never, waiting("ImagePullBackOff", "not found"), ended(143, ""), 1)
		}},
		"it was made by an older spec": {"3.6.16", false, func(p *corev1.Pod) {
			p.Annotations = map[string]string{manifest.PodTemplateAnnotation: "older", manifest.VersionAnnotation: "3.6.16"}
			kubelet(p, ended(0, ""), never, waiting("CrashLoopBackOff", ""), ended(1, ""), 1)
		}},
		"its pod has ended": {"3.6.16", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"it was restored, and its image is unavailable": {"3.6.99", true, func(p *corev1.Pod) {
			kubelet(p, ended(0, ""), never, waiting("ImagePullBackOff", "not found"), ended(143, ""), 1)
		}},
		"it was restored, and another one is on record in the cache": {"3.6.16", true, func(p *corev1.Pod) {
			p.Name = "b"
			kubelet(p, ended(0, ""), never, waiting("CrashLoopBackOff", ""), ended(1, ""), 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			obj, p := testCluster(), seedPod("a")
			if tt.restored {
				obj, p.Source = restoredCluster(), testSource()
			}
			w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
			w.edit(creating("a"))
			c := w.cluster(w.edit(func(obj *api.EtcdCluster) { obj.Status.RestoredFrom = manifest.RestoredFrom(p.Source) }))
			w.makeService(served(manifest.BuildPeerService(c.obj)))
			p.Version = tt.version
			pod, err := manifest.BuildPod(c.obj, p, manifest.CertForms{}, operatorImage)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(pod)
			w.makePod(pod)
			w.watch()
			next := func() (plan.Step, error) {
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s := plan.Plan(o)
				if _, is := s.(plan.DeletePod); !is {
					t.Fatalf("the step is %s, and not the deletion of the seed", s)
				}
				return s, c.apply(t.Context(), s)
			}
			live := w.edit(func(obj *api.EtcdCluster) { obj.Status.Phase = api.ClusterPhaseRunning })
			if s, err := next(); !errors.Is(err, errSuperseded) || len(w.storedPods()) != 1 {
				t.Errorf("%s: error %v, %d pods: a member of a cluster that runs is gone", s, err, len(w.storedPods()))
			}
			if c.status.Phase != live.Status.Phase {
				t.Errorf("the next pass plans for phase %s", c.status.Phase)
			}
			// In the phase Creating, the operator deletes it.
			c.status.Phase = api.ClusterPhaseCreating
			w.edit(func(obj *api.EtcdCluster) { obj.Status.Phase = api.ClusterPhaseCreating })
			if s, err := next(); err != nil || len(w.storedPods()) != 0 {
				t.Errorf("%s: error %v, %d pods", s, err, len(w.storedPods()))
			}
		})
	}
}
