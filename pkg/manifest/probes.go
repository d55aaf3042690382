// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// setProbes adds probes over HTTP on etcd's metrics listener, which need neither a shell in
// the image nor a client certificate. A ready member takes part in a quorum and has a vote.
// Liveness only concerns the member itself: a restart does not restore a lost quorum. The
// paths stay after a version change in place: all later versions serve them.
func setProbes(c *corev1.Container, version etcd.Version) {
	// Before /readyz, etcd calls a member with a full database unhealthy. It serves reads, and the deletions that
	// make room.
	ready := httpGet("/health?exclude=NOSPACE")
	opened := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(ClientPort)}}
	alive := opened
	switch {
	case version.HasLivez():
		// A read of the database waits for a defragmentation, which takes minutes for a large
		// one. A restart would begin it again.
		ready, opened, alive = httpGet("/readyz"), httpGet("/livez"), httpGet("/livez?exclude=serializable_read")
	case !version.HasMetricsListener():
		ready = alive
	}
	// Until etcd has opened its database, which takes minutes for a large one, only the
	// startup probe runs.
	c.StartupProbe = &corev1.Probe{ProbeHandler: opened, PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1800}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: ready, PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 3}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 10, TimeoutSeconds: 10, FailureThreshold: 6}
}

func httpGet(path string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: path, Port: intstr.FromInt32(MetricsPort), Scheme: corev1.URISchemeHTTP,
	}}
}
