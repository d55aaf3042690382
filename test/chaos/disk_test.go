//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

var diskFaults = []fault{
	{name: "fsyncs hang", strike: func(s *storm, c *target, member *corev1.Pod) {
		release := c.SlowDisk(member, harness.Hanging)
		s.hold(5, 60)
		release()
	}},
	{name: "slow disk", strike: func(s *storm, c *target, member *corev1.Pod) {
		release := c.SlowDisk(member, time.Duration(20+s.rand.IntN(480))*time.Millisecond)
		s.hold(10, 60)
		release()
	}},
	// The operator waits ten minutes before it gives such a member up.
	{name: "fsyncs hang until a replacement", calm: true, fits: replicated, least: time.Hour, strike: func(s *storm, c *target, member *corev1.Pod) {
		release := c.SlowDisk(member, harness.Hanging)
		defer release()
		harness.Wait(s.t, member.Name+" replaced", recovery, func(context.Context) error {
			ready := c.ready()
			if len(ready) < c.size || slices.ContainsFunc(ready, func(p *corev1.Pod) bool { return p.UID == member.UID }) {
				return errors.New("it is not")
			}
			return nil
		})
	}},
}
