// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestReasonsOfRefusalsDontDependOnThePod(t *testing.T) {
	pods := corev1.Resource("pods")
	for _, c := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(pods, "c-x1", errors.New("exceeded quota: q")), "forbidden: exceeded quota: q"},
		{apierrors.NewForbidden(pods, "c-x1", errors.New("no PriorityClass with name high was found")), "forbidden: no PriorityClass with name high was found"},
		{apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "c-x1", field.ErrorList{field.Required(field.NewPath("spec"), "x")}), "invalid: spec: Required value: x"},
		{apierrors.NewBadRequest("admission webhook says no to c-x1"), "admission webhook says no to <pod>"},
	} {
		if got := (&podRefusedError{"c-x1", c.err}).reason(); got != c.want {
			t.Errorf("%q of %q, want %q", got, c.err, c.want)
		}
	}
}

// A quota admits one pod of three, and grows later.
func TestRefusedPodsAreToldAndTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Status = runningStatus()
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	var left atomic.Int64
	left.Store(1)
	var tries []string
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		pod, err := meta.Accessor(a.(clienttesting.CreateAction).GetObject())
		if err != nil || left.Add(-1) >= 0 {
			return false, nil, err
		}
		tries = append(tries, pod.GetName()) // one at a time: the fake holds a lock
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), pod.GetName(), errors.New("exceeded quota"))
	})
	makeThree := func(round string) error {
		var pods []manifest.MemberPod
		for i := range 3 {
			pods = append(pods, manifest.MemberPod{Name: fmt.Sprintf("c-%s%d", round, i), Version: "3.6.16"})
		}
		return c.apply(t.Context(), plan.CreatePods{Pods: pods})
	}
	if err := makeThree("a"); err == nil || !strings.Contains(err.Error(), "exceeded quota") || len(tries) != 2 {
		t.Errorf("error %v, refused: %v", err, tries)
	}
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st := statusAfter(o, plan.Idle{}, 1); st.Reason != "Kubernetes refuses the pods of members: forbidden: exceeded quota" {
		t.Errorf("status.reason is %q", st.Reason)
	}
	if _, _, message := availability(o, obj.Status.Phase); !strings.Contains(message, "exceeded quota") {
		t.Errorf("condition Available does not say so: %s", message)
	}
	if s := plan.AwaitPermission(o, plan.CreatePods{}); s == nil || !strings.HasPrefix(s.String(), "idle") {
		t.Errorf("at once again: %v", s)
	}

	clock.Step(refusedPause)
	tries = nil
	if err := makeThree("b"); err == nil || len(tries) != 1 {
		t.Errorf("error %v, tries %v: those that join after one that is refused are not made", err, tries)
	}
	if n := w.Times("Pod Refused"); n != 1 {
		t.Errorf("reported %d times: %q", n, w.Events())
	}

	left.Store(10)
	clock.Step(refusedPause)
	if err := makeThree("c"); err != nil {
		t.Error(err)
	}
	if o, err = c.observe(t.Context()); err != nil || o.Refused.Why != "" {
		t.Errorf("after the quota has grown: %+v, %v", o.Refused, err)
	}
}

// A policy refused the image of one member, in the middle of an upgrade. Its pod was the first of each attempt,
// and no other member ever came back to its volume.
func TestARefusedPodHoldsNoOtherMemberBack(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	obj.Status = runningStatus()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		pod, err := meta.Accessor(a.(clienttesting.CreateAction).GetObject())
		if err != nil || pod.GetName() != "c-a" {
			return false, nil, err
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), pod.GetName(), errors.New("this image is not allowed"))
	})
	back := func(name string) manifest.MemberPod {
		return manifest.MemberPod{Name: name, Version: "3.6.16", Volume: true, Rejoins: true}
	}
	for _, lost := range [][]manifest.MemberPod{{back("c-a")}, {back("c-a"), back("c-b"), back("c-c")}} {
		if err := c.apply(t.Context(), plan.CreatePods{Pods: lost}); !apierrors.IsForbidden(err) || c.refused.Why == "" {
			t.Errorf("error %v, noted: %q", err, c.refused.Why)
		}
	}
	if pods := w.storedPods(); len(pods) != 2 {
		t.Errorf("%d of the two other members come back", len(pods))
	}
}

// A volume costs money as soon as its claim exists. The operator deletes it if no pod uses it.
func TestNoVolumeIsMadeForAPodThatIsRefused(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	obj.Status = runningStatus()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	var answer error // to whoever only asks
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if onlyAsks(a) {
			return answer != nil, nil, answer
		}
		refused := apierrors.IsForbidden(answer)
		return refused, nil, answer
	})
	attempt := func(p manifest.MemberPod) error {
		p.Version, p.Volume = "3.6.16", true
		return c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{p}})
	}
	claims := func() int { return w.count("create", "persistentvolumeclaims") }

	answer = apierrors.NewForbidden(corev1.Resource("pods"), "c-a", errors.New("exceeded quota"))
	if err := attempt(manifest.MemberPod{Name: "c-a"}); err == nil || !strings.Contains(err.Error(), "exceeded quota") || c.refused.Why == "" {
		t.Errorf("error %v, noted: %q", err, c.refused.Why)
	}
	if n := claims(); n != 0 {
		t.Errorf("%d volumes", n)
	}
	for name, err := range map[string]error{
		"it is taken":                        nil,
		"another instance was faster":        apierrors.NewAlreadyExists(corev1.Resource("pods"), "c-b"),
		"a webhook that can't be only asked": apierrors.NewBadRequest("admission webhook \"x\" does not support dry run"),
	} {
		before := claims()
		answer = err
		if err := attempt(manifest.MemberPod{Name: "c-" + fmt.Sprint(before)}); err != nil || claims() != before+1 {
			t.Errorf("%s: %v, %d volumes", name, err, claims()-before)
		}
	}
	// A member that comes back has its volume: asking first would be for nothing.
	before := w.count("create", "pods")
	if err := attempt(manifest.MemberPod{Name: "c-z", Rejoins: true}); err != nil || w.count("create", "pods") != before+1 {
		t.Errorf("%v, %d requests", err, w.count("create", "pods")-before)
	}
}

func TestARefusalIsForgottenWithTheSpecThatItWasAbout(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	r := plan.RefusedPods{Why: "quota", Generation: 1, Until: noon.Add(refusedPause)}
	if !stillRefused(r, 1, clock.Now()) {
		t.Error("it is not current")
	}
	if stillRefused(r, 2, clock.Now()) {
		t.Error("an edit of the spec is not tried at once")
	}
	clock.Step(5 * refusedPause)
	if stillRefused(r, 1, clock.Now()) {
		t.Error("it is reported forever, though no pod is needed any more")
	}
}

// An operator with a newer default must not upgrade clusters by itself.
func TestAnUnsetVersionIsTheOneThatRuns(t *testing.T) {
	for _, c := range []struct{ spec, current, want string }{
		{"", "", ""}, // the default
		{"", "3.5.35", "3.5.35"},
		{"3.6.16", "3.5.35", "3.6.16"},
	} {
		obj := testCluster()
		obj.Spec.Version, obj.Status.CurrentVersion = c.spec, c.current
		w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
		o, err := w.cluster(obj).observe(t.Context())
		if err != nil || o.Spec.Version != c.want {
			t.Errorf("spec %q, runs %q: %q, %v, want %q", c.spec, c.current, o.Spec.Version, err, c.want)
		}
	}
}
