//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (
	// probePeriod is how long the kubelet takes to see that etcd serves after a restart or a
	// join. Kubernetes allows no shorter period of a probe.
	probePeriod = time.Second
	// lookPeriod is the time between two looks at the membership.
	lookPeriod = 100 * time.Millisecond
)

// A simulatedPod does for one pod what a kubelet does. A pod that starts a cluster is ready at
// once. One that joins waits for its place in the membership, as the launcher does. After that, and
// after a change of its image, the startup probe has to succeed.
type simulatedPod struct {
	n    *simulatedNode
	wake chan struct{}

	mu     sync.Mutex
	newest *corev1.Pod // nil: it is gone

	// The rest belongs to run.
	ip       string
	shown    podState // in the pod's status
	state    podState
	probedAt time.Time
}

// podState is the state of the etcd container.
type podState struct {
	image         string // that runs
	launching     bool   // the launcher waits
	opened, ready bool
	restarts      int32
}

// show hands over the newest state of the pod.
func (p *simulatedPod) show(pod *corev1.Pod) {
	p.mu.Lock()
	p.newest = pod
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run ends with the pod.
func (p *simulatedPod) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		p.mu.Lock()
		pod := p.newest
		p.mu.Unlock()
		if pod == nil || pod.DeletionTimestamp != nil {
			p.n.members.stop(p.ip)
			if pod != nil {
				p.end(ctx, pod)
			}
			return
		}
		again, err := p.step(ctx, pod)
		if err == nil && p.state != p.shown {
			err = p.report(ctx, pod)
		}
		if err != nil {
			p.n.fail(ctx, fmt.Errorf("run the pod %s: %w", pod.Name, err))
			return
		}
		timer.Reset(again)
	}
}

// step does what is due, and returns when to look again.
func (p *simulatedPod) step(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	image := etcdImage(pod)
	expected, votes := p.n.members.expects(pod)
	switch {
	case p.ip == "" && manifest.PodStateOf(pod).Seed:
		p.ip = p.n.address()
		p.state = podState{image: image, opened: true, ready: true}
		return time.Hour, p.start(ctx, pod, image)
	case p.ip == "":
		p.ip, p.state.launching = p.n.address(), true
		return lookPeriod, nil
	case p.state.launching && !expected:
		return lookPeriod, nil
	case p.state.launching:
		p.state = podState{image: image}
		p.probedAt = time.Now().Add(probePeriod)
		return probePeriod, p.start(ctx, pod, image)
	case p.state.image != image:
		p.n.members.stop(p.ip)
		p.state = podState{image: image, restarts: p.state.restarts + 1}
		p.probedAt = time.Now().Add(probePeriod)
		return probePeriod, p.start(ctx, pod, image)
	case time.Now().Before(p.probedAt):
		return time.Until(p.probedAt), nil
	case !p.state.opened, p.state.ready != votes:
		p.state.opened, p.state.ready = true, votes
	}
	if !p.state.ready {
		return lookPeriod, nil
	}
	return time.Hour, nil
}

func (p *simulatedPod) start(ctx context.Context, pod *corev1.Pod, image string) error {
	return p.n.members.start(ctx, pod, p.ip, manifest.VersionOf(image, ""))
}

func etcdImage(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == manifest.EtcdContainer {
			return c.Image
		}
	}
	return ""
}

// end removes a pod that somebody has deleted.
func (p *simulatedPod) end(ctx context.Context, pod *corev1.Pod) {
	defer p.n.slot()()
	err := p.n.pods().Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		p.n.fail(ctx, fmt.Errorf("end the pod %s: %w", pod.Name, err))
	}
}

// report writes the status. The watch says so if the pod is gone.
func (p *simulatedPod) report(ctx context.Context, pod *corev1.Pod) error {
	defer p.n.slot()()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": p.status(pod)})
	if err != nil {
		return err
	}
	_, err = p.n.pods().Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	p.shown = p.state
	return nil
}

func (p *simulatedPod) status(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}}, StartTime: &pod.CreationTimestamp}
	is := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		holds := p.state.ready || kind == corev1.PodScheduled || kind == corev1.PodInitialized
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: is[holds], LastTransitionTime: now})
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: pod.CreationTimestamp, FinishedAt: now}}
	for _, c := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, State: ended})
	}
	for _, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Name, Ready: p.state.ready, Started: ptr.To(p.state.opened),
			ContainerID: fmt.Sprintf("simulated://%s-%s-%d", pod.UID, c.Name, p.state.restarts), RestartCount: p.state.restarts,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}
		if p.state.restarts > 0 {
			s.LastTerminationState = ended
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return status
}
