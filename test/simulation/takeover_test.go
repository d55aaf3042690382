// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// takeover returns the fault that the operators are replaced: what they find is as the fork of
// v0.9.4 leaves it. Its pods do not notice a lost disk, so no disk is lost in such a life.
func (w *world) takeover() *fault {
	at := w.life.between(40*time.Second, 5*time.Minute, "takeover at")
	return &fault{id: fmt.Sprintf("the operators replace those of an earlier release at %s", at.Round(time.Millisecond)), at: at, begin: func() {
		obj := w.api.cluster()
		if obj == nil || obj.Status.Phase != api.ClusterPhaseRunning || w.backups != nil && w.backups.restoration() != nil || w.wiped || w.rolledBack {
			w.narrate("world", "there is nothing to take over")
			return
		}
		w.impaired()
		for _, o := range w.processes() {
			if !o.ended {
				o.crash()
			}
		}
		w.leaveAsBefore()
	}}
}

// taken reports whether the operators replace those of an earlier release in this life.
func (w *world) taken() bool { return w.backups != nil && w.life.chance(0.25, "takeover") }

// leaveAsBefore changes all objects to those that an earlier release would have left.
func (w *world) leaveAsBefore() {
	a := w.api
	for _, pod := range a.pods() {
		a.edit("pods", pod.Name, func(o metav1.Object) { formerPod(o.(*corev1.Pod)) })
	}
	for _, resource := range []string{"persistentvolumeclaims", "services"} {
		s := a.shelves[resource]
		for _, key := range s.keys() {
			obj := s.objects[key].obj
			a.edit(resource, obj.GetName(), func(o metav1.Object) { formerMetadata(o) })
		}
	}
	for _, key := range a.shelves["poddisruptionbudgets"].keys() {
		a.drop(a.shelves["poddisruptionbudgets"], key)
	}
	s := a.shelves["etcdclusters"]
	cluster := a.cluster().DeepCopy()
	st := cluster.Status
	cluster.Status = api.ClusterStatus{
		Phase: st.Phase, Size: st.Size, ServiceName: st.ServiceName, ClientPort: st.ClientPort,
		Members: st.Members, CurrentVersion: "v" + strings.TrimPrefix(st.CurrentVersion, "v"),
		Conditions: slices.DeleteFunc(slices.Clone(st.Conditions), func(c api.ClusterCondition) bool {
			return c.Type != api.ClusterConditionAvailable || c.Status != corev1.ConditionTrue
		}),
	}
	a.put(s, cluster)
	if w.backups == nil {
		return
	}
	for _, name := range []string{scheduledName, onceName} {
		if obj := w.backups.saved(name); obj != nil {
			obj = obj.DeepCopy()
			st := obj.Status
			w.backups.former = w.backups.former || name == onceName && !st.Succeeded && st.Reason != ""
			obj.Status = api.BackupStatus{Succeeded: st.Succeeded, Reason: st.Reason, EtcdVersion: st.EtcdVersion, EtcdRevision: st.EtcdRevision, LastSuccessDate: st.LastSuccessDate}
			a.put(a.shelves["etcdbackups"], obj)
		}
	}
}

// formerMetadata leaves the labels and annotations of an earlier release.
func formerMetadata(o metav1.Object) {
	kept := map[string]string{}
	for _, key := range []string{"node"} { // the model's own
		if v, ok := o.GetAnnotations()[key]; ok {
			kept[key] = v
		}
	}
	o.SetAnnotations(kept)
	labels := maps.Clone(o.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return !slices.Contains([]string{"app", "etcd_cluster", "etcd_node", "team"}, key)
	})
	o.SetLabels(labels)
}

// formerPod makes a pod one of an earlier release.
func formerPod(pod *corev1.Pod) {
	formerMetadata(pod)
	pod.Annotations["etcd.version"] = "v" + versionOf(pod.Spec.Containers[0].Image)
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "check-dns", Image: "busybox:1.28.0-glibc",
		Command: []string{"/bin/sh", "-c", "while ( ! nslookup " + pod.Name + " ); do sleep 1; done"},
	}}
	c := &pod.Spec.Containers[0]
	known := []string{
		"--data-dir", "--name", "--initial-advertise-peer-urls", "--listen-peer-urls", "--listen-client-urls",
		"--advertise-client-urls", "--initial-cluster", "--initial-cluster-state", "--initial-cluster-token",
	}
	c.Command = slices.DeleteFunc(slices.Clone(c.Command[slices.Index(c.Command, "--")+1:]), func(arg string) bool {
		flag, _, is := strings.Cut(arg, "=")
		return is && !slices.Contains(known, flag)
	})
	c.Env = nil
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"etcdctl", "endpoint", "status"}}}}
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = probe, probe.DeepCopy(), probe.DeepCopy()
	pod.Spec.Volumes = slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return v.Name != "etcd-data" })
	c.VolumeMounts = slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(v corev1.VolumeMount) bool { return v.Name != "etcd-data" })
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if claimOf(pod) == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// former reports whether an earlier release has made a pod.
func former(pod *corev1.Pod) bool {
	c := pod.Spec.InitContainers
	return len(c) == 1 && len(c[0].Command) == 3
}

// failsForGood ends a pod that never restarts its containers, if etcd has run in it.
func (r *podRun) failsForGood(online bool) bool {
	if r.pod.Spec.RestartPolicy != corev1.RestartPolicyNever || r.image == "" || r.proc != nil && !r.proc.stopped || r.ended {
		return false
	}
	if !online {
		return true
	}
	w := r.w
	w.wiped = w.wiped || w.disks[r.diskKey()].hasData()
	w.narrate(r.name, "has failed, and never restarts")
	r.end("it has failed")
	w.api.edit("pods", r.name, func(o metav1.Object) {
		st := &o.(*corev1.Pod).Status
		st.Phase, st.Reason = corev1.PodFailed, "Error"
		setCondition(st, corev1.PodReady, false)
		for i := range st.ContainerStatuses {
			st.ContainerStatuses[i].Ready = false
			st.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
		}
	})
	return true
}
