// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// startedEnv is the variable by which init containers know the note: datadir.StartedEnv.
const startedEnv = "MEMBER_STARTED"

// noteStarted notes on a pod that a member has served from it. A node may come back
// with an empty disk and start the same pod again; then only what is kept outside of
// the node tells check-dns that data is missing. It comes before the client Service,
// further members and votes: nobody relies on a member before it is noted. Pods of
// earlier operators don't heed the note and get none.
func noteStarted(o *observation) step {
	for _, m := range o.own() {
		if p := m.pod; p != nil && m.status != nil && p.guarded && !p.noted && !p.notePutOff && !p.deleting {
			return noteMember{pod: p.name, uid: p.uid, id: m.ID}
		}
	}
	return nil
}

// heedsNote reports whether the pod's check-dns reads the note.
func heedsNote(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == checkDNSContainer {
			return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == startedEnv })
		}
	}
	return false
}

func (c *Cluster) noteMember(ctx context.Context, s noteMember) error {
	pod, err := c.patchMetadata(ctx, s.pod, s.uid, "annotations", map[string]string{startedAnnotation: etcd.FormatID(s.id)})
	c.writeEnded(noteOn(s.pod), err)
	if err != nil {
		return fmt.Errorf("%s: %w", noteOn(s.pod), err)
	}
	// A webhook may take it off each time.
	c.postponed[noteOn(s.pod)] = c.cfg.Clock.Now().Add(mendPause)
	c.podWrites.record(pod, c.cfg.Clock.Now())
	return nil
}

// noteOn names the write of the note.
func noteOn(pod string) string { return "note on pod " + pod + " that its member has served" }
