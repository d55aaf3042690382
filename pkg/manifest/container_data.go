// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// DataPort is where a container serves the database of a member that has started without a quorum.
const DataPort = 2382

// dataContainer is the prefix of the names of such containers. An ephemeral container never starts a
// second time, so each one has a number.
const dataContainer = "serve-data-"

// DataServer is the container that serves the database of a member.
type DataServer struct {
	// Begun is how many there have been.
	Begun int
	// Running is true while the last one runs, and Ended if it has ended.
	Running, Ended bool
	// Problem says why it does not run, in Kubernetes' words; "" if there is no reason.
	Problem string
}

// dataServerOf reads the last such container of a pod.
func dataServerOf(pod *corev1.Pod) DataServer {
	var d DataServer
	for _, c := range pod.Spec.EphemeralContainers {
		if number, ours := strings.CutPrefix(c.Name, dataContainer); ours {
			n, _ := strconv.Atoi(number) // 0 for a name of somebody else
			d.Begun = max(d.Begun, n)
		}
	}
	for _, s := range pod.Status.EphemeralContainerStatuses {
		if s.Name != dataContainer+strconv.Itoa(d.Begun) {
			continue
		}
		d.Running, d.Ended = s.State.Running != nil, s.State.Terminated != nil
		switch {
		case s.State.Terminated != nil:
			d.Problem = fmt.Sprintf("ended with exit code %d: %s", s.State.Terminated.ExitCode, failureLine(s.State.Terminated.Message))
		case s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating":
			d.Problem = strings.TrimSuffix(s.State.Waiting.Reason+": "+s.State.Waiting.Message, ": ")
		}
	}
	return d
}

// ServeData returns the container that serves the database of a pod's member, by its number from 1. The
// volumes and the user are those of etcd. It only reads.
func ServeData(obj *api.EtcdCluster, pod *corev1.Pod, number int, operatorImage string) (*corev1.EphemeralContainer, error) {
	i := slices.IndexFunc(pod.Spec.Containers, isEtcd)
	if i < 0 {
		return nil, fmt.Errorf("pod %s has no container %s", pod.Name, EtcdContainer)
	}
	process := &pod.Spec.Containers[i]
	c := corev1.EphemeralContainerCommon{
		Name:  dataContainer + strconv.Itoa(number),
		Image: operatorImage,
		Command: []string{
			"/usr/local/bin/etcd-operator", "serve-data", "-data-dir=" + dataDir,
			fmt.Sprintf("-listen=:%d", DataPort), fmt.Sprintf("-metrics=127.0.0.1:%d", MetricsPort),
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          process.SecurityContext.DeepCopy(),
	}
	if obj.Spec.ClientTLS() {
		c.Command = append(c.Command, "-cert="+ServerCert.path(ServerCert.Cert), "-key="+ServerCert.path(ServerCert.Key), "-ca="+ServerCert.path(ServerCert.CA))
	}
	for _, m := range process.VolumeMounts {
		if m.Name == dataVolume || m.Name == ServerCert.volume {
			m.ReadOnly = true
			c.VolumeMounts = append(c.VolumeMounts, m)
		}
	}
	return &corev1.EphemeralContainer{EphemeralContainerCommon: c}, nil
}
