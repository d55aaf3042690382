// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// dataOfRoot is a member whose data belongs to root, with its volume in the API server. reports puts its
// pod there, which can't read the data.
func dataOfRoot(t *testing.T, clock *clocktesting.FakeClock) (w *world, c *Cluster, reports func()) {
	t.Helper()
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	obj.Status = runningStatus()
	w = newWorld(t, clock, obj)
	c = w.cluster(obj)
	claim, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), manifest.BuildVolume(obj, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.volumes.Add(claim); err != nil {
		t.Fatal(err)
	}
	return w, c, func() {
		pod, err := manifest.BuildPod(obj, manifest.MemberPod{Name: "a", Version: "3.6.16", Volume: true, Rejoins: true}, manifest.CertForms{}, "operator")
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.NodeName = "node"
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: manifest.CheckDNSContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Message: "the data in /var/etcd/data belongs to user 0 and group 0, and this pod runs as user 65532",
			}},
		}}
		w.makePod(pod)
		w.watch()
	}
}

// A pod as the user of the data was refused. The record of that user stayed, and when the pod was lost,
// Kubernetes refused it forever, although somebody had given the data to the usual user meanwhile.
func TestAUserWhomKubernetesRefusesIsNotRecorded(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w, c, reports := dataOfRoot(t, clock)
	reports()
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked := *a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Spec.SecurityContext.RunAsUser
		return asked == 0, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("violates PodSecurity"))
	})
	next := func() (*plan.Observation, plan.Step) {
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o.PeerService = plan.OwnedObject{Owned: true}
		return o, plan.Plan(o)
	}
	_, record := next()
	if _, records := record.(plan.SetVolumeOwner); !records {
		t.Fatalf("the step is %s", record)
	}
	if err := c.apply(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	o, s := next()
	if _, waits := s.(plan.Wait); !waits {
		t.Errorf("the next step is %s", s)
	}
	if n := w.count("patch", "persistentvolumeclaims"); n != 0 || len(w.storedPods()) != 1 {
		t.Errorf("%d records, %d pods", n, len(w.storedPods()))
	}
	if p := o.Pods[0]; !strings.Contains(p.Problem, "belongs to user 0") || !strings.Contains(p.Problem, "violates PodSecurity") || o.UpdateRefused != "" {
		t.Errorf("the problem is %q, and an update is refused: %q", p.Problem, o.UpdateRefused)
	}
	clock.Step(specRefusedPause)
	if _, s := next(); s.String() != record.String() {
		t.Errorf("after a minute the step is %s", s)
	}
}

// A webhook that sets the user of all pods lets no pod follow the owner of its data. The operator recreated
// the pod as often as its init container could fail.
func TestAPodWhoseUserSomebodyChangesIsRarelyRecreated(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w, c, reports := dataOfRoot(t, clock)
	recreated, told := 0, false
	for range 60 {
		if len(w.storedPods()) == 0 {
			reports()
		}
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o.PeerService = plan.OwnedObject{Owned: true}
		told = told || len(o.Pods) > 0 && strings.Contains(o.Pods[0].Problem, "allow the user in the webhook")
		s := plan.Plan(o)
		if recycle, is := s.(plan.RecyclePod); is {
			recreated++
			if err := c.apply(t.Context(), recycle); err != nil {
				t.Fatal(err)
			}
			w.watch()
		}
		if record, is := s.(plan.SetVolumeOwner); is {
			if err := c.apply(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			claim, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "a", metav1.GetOptions{})
			if err == nil {
				err = w.volumes.Update(claim)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		clock.Step(2 * time.Second)
	}
	if recreated != 2 || !told {
		t.Errorf("recreated %d times in two minutes; the status says why: %t", recreated, told)
	}
}
