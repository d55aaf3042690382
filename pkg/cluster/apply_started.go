// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func (c *Cluster) noteMember(ctx context.Context, s plan.NoteMember) error {
	pod, err := c.patchMetadata(ctx, s.Pod, s.UID, "annotations", map[string]string{manifest.StartedAnnotation: etcd.FormatID(s.ID)})
	c.writeEnded(noteOn(s.Pod), err)
	if err != nil {
		return fmt.Errorf("%s: %w", noteOn(s.Pod), err)
	}
	// A webhook may remove it each time.
	c.postponed.put(noteOn(s.Pod), c.cfg.Clock.Now().Add(c.pauseAfterCorrection(noteOn(s.Pod))))
	c.postponed.seeKept(noteOn(s.Pod), "pod "+s.Pod, pod, manifest.StartedAnnotation, etcd.FormatID(s.ID))
	c.podWrites.record(pod, c.cfg.Clock.Now())
	return nil
}

// noteOn names the write of the note.
func noteOn(pod string) string { return "note on pod " + pod + " that its member has served" }
