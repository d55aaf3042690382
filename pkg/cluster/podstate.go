// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// deleteMargin is what a pod's deletion may take beyond its grace period before
// its node is taken to be gone.
const deleteMargin = 10 * time.Second

// podStateOf reads what a plan needs from a pod.
func podStateOf(pod *corev1.Pod) podState {
	p := podState{
		name:      pod.Name,
		uid:       pod.UID,
		ip:        pod.Status.PodIP,
		node:      pod.Spec.NodeName,
		created:   pod.CreationTimestamp.Time,
		scheduled: pod.Spec.NodeName != "",
		deleting:  pod.DeletionTimestamp != nil,
		previous:  pod.Annotations[previousVersionAnnotation],
		legacy:    pod.Spec.RestartPolicy == corev1.RestartPolicyNever,
		template:  template{pod.Annotations[podTemplateAnnotation], pod.Annotations[volumeTemplateAnnotation]},
		finished:  pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		ready:     hasCondition(pod, corev1.PodReady, corev1.ConditionTrue),
	}
	if p.deleting {
		p.deleteBy = pod.DeletionTimestamp.Add(deleteMargin)
	}
	if i := slices.IndexFunc(pod.Spec.Containers, isEtcd); i >= 0 {
		c := pod.Spec.Containers[i]
		p.image, p.version = imageAskedFor(pod, c.Image)
		p.admitted = c.Image
		p.seed, p.initialCluster = bootstrapFlags(c.Command)
		p.source = pod.Annotations[sourceAnnotation]
		p.manyLearners = slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == maxLearnersEnv })
	}
	p.preparing = preparing(pod)
	p.guarded, p.noted = heedsNote(pod), pod.Annotations[startedAnnotation] != ""
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == checkDNSContainer {
			p.atGate = s.State.Running != nil || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
			p.dataless = missesData(s.State) || missesData(s.LastTerminationState)
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == etcdContainer {
			p.restarts = s.RestartCount
			p.running = s.State.Running != nil
			p.started = p.running || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0
			if w := s.State.Waiting; w != nil {
				p.crashing = w.Reason == "CrashLoopBackOff"
				p.badImage = slices.Contains(imageTroubles, w.Reason)
			}
		}
	}
	p.problem, p.problemKind = problemOf(pod)
	if !p.scheduled {
		p.crowded = crowdedNodes(p.problem)
	}
	p.offVolume = !p.scheduled && slices.ContainsFunc(volumeTroubles, func(s string) bool { return strings.Contains(p.problem, s) })
	return p
}

// missesData reports whether check-dns has ended because the data that has to be there is
// gone (internal/datadir, internal/checkdns and the script of busyboxImage all say so).
func missesData(s corev1.ContainerState) bool {
	return s.Terminated != nil && s.Terminated.ExitCode != 0 && strings.Contains(s.Terminated.Message, "holds no data")
}

func isEtcd(c corev1.Container) bool { return c.Name == etcdContainer }

// imageTroubles are the kubelet's reasons for a container whose image can't be had.
var imageTroubles = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}

// volumeTroubles are what the scheduler says of nodes that have no access to the volume of
// a pod: its node is gone, or the pod may not run there (nodeaffinity and volumebinding in
// pkg/scheduler/framework/plugins; the first is that of newer releases).
var volumeTroubles = []string{"didn't match PersistentVolume's node affinity", "had volume node affinity conflict"}

// versionOf reads the version from an image's tag; the annotation is for images
// that were named by something else.
func versionOf(image, annotation string) string {
	image, _, _ = strings.Cut(image, "@")
	if _, tag, ok := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":"); ok {
		if v, err := etcd.ParseVersion(tag); err == nil {
			return v.String()
		}
	}
	return strings.TrimPrefix(annotation, "v")
}

func bootstrapFlags(command []string) (seed bool, ic etcd.InitialCluster) {
	for _, arg := range command {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--initial-cluster-state":
			seed = value == "new"
		case "--initial-cluster":
			ic = etcd.ParseInitialCluster(value)
		}
	}
	return seed, ic
}

// preparing is the first init container that has not ended well.
func preparing(pod *corev1.Pod) string {
	for _, c := range pod.Spec.InitContainers {
		if !slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == c.Name && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		}) {
			return c.Name
		}
	}
	return ""
}

func hasCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t && c.Status == status })
}

// problemOf says why a pod doesn't run etcd, where Kubernetes gives a reason. The kind
// is what stays the same while a problem lasts.
func problemOf(pod *corev1.Pod) (problem, kind string) {
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace("the pod has failed: " + pod.Status.Reason + " " + pod.Status.Message), "failed"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "the pod can't be scheduled: " + c.Message, "not scheduled"
		}
	}
	for _, s := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		last := s.State.Terminated
		if last == nil {
			last = s.LastTerminationState.Terminated
		}
		w := s.State.Waiting
		badImage := w != nil && slices.Contains(imageTroubles, w.Reason)
		switch {
		case s.State.Running != nil:
		case last != nil && last.ExitCode != 0 && !badImage:
			return fmt.Sprintf("container %s ended with exit code %d: %s", s.Name, last.ExitCode, lastWords(last.Message)), s.Name + " ends"
		case w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating":
			kind = s.Name + " waits for " + w.Reason
			if badImage { // the kubelet tries to pull it, and waits to try again, in turns
				kind = s.Name + " has no image"
			}
			return fmt.Sprintf("container %s (%s) is waiting: %s: %s", s.Name, imageOf(pod, s), w.Reason, w.Message), kind
		}
	}
	return "", ""
}

// imageOf returns the image that a container is to run. After an edit, its status names
// the one before until the new one runs.
func imageOf(pod *corev1.Pod, s corev1.ContainerStatus) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == s.Name {
			return c.Image
		}
	}
	return s.Image
}
