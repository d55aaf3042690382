// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (
	// membershipTimeout bounds one change of the membership. It takes as long as a write.
	// Without a quorum it never ends, and the operator can't report that before the timeout.
	membershipTimeout = 4 * time.Second
	// changeTimeout bounds a change of the leader, and one batch of the entries that advance
	// the log.
	changeTimeout = 10 * time.Second
)

// onMember runs a change through a member; nil stands for none that takes changes.
func (c *Cluster) onMember(ctx context.Context, conn Member, timeout time.Duration, change func(context.Context, Member) error) error {
	if conn == nil {
		return errNoQuorum
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := change(ctx, conn)
	if etcd.LacksRole(err) {
		return fmt.Errorf("%w: grant the role root to the operator's user (etcdctl user grant-role USER root)", err)
	}
	return err
}

func (c *Cluster) addOneMember(ctx context.Context, s plan.AddMember) error {
	err := c.onVoter(ctx, func(ctx context.Context, conn Member) error {
		_, err := conn.AddMember(ctx, manifest.NamesOf(c.obj).PeerURL(s.Name), s.Learner)
		return err
	})
	c.changed("add "+s.Name, err, func(o *plan.Observation) bool {
		return o.HasMember(func(m plan.MemberState) bool { return m.PodName == s.Name })
	}, func() { c.notices.memberAdded(s.Name) })
	return err
}

func (c *Cluster) promoteMember(ctx context.Context, s plan.PromoteMember) error {
	err := c.onVoter(ctx, func(ctx context.Context, conn Member) error { return conn.PromoteMember(ctx, s.ID) })
	c.changed("promote "+s.Name, err, func(o *plan.Observation) bool {
		return o.HasMember(func(m plan.MemberState) bool { return m.ID == s.ID && !m.Learner })
	}, func() { c.notices.memberPromoted(s) })
	return err
}

// removeOneMember removes a member from etcd and then deletes its pod. It first asks the API
// server itself whether the pod and its data are gone, or whether the pods are there that the removal relies
// on: the removal is irreversible.
func (c *Cluster) removeOneMember(ctx context.Context, s plan.RemoveMember) error {
	if err := c.stay(ctx, s.Relies); err != nil {
		return err
	}
	if s.Why.Kind == plan.PodGone {
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s of the member to remove: %w", s.Name, err)
		}
		if err == nil && pod.DeletionTimestamp == nil && !manifest.PodStateOf(pod).Finished {
			return c.unhide(ctx, pod)
		}
		if kept, err := c.hasVolume(ctx, s.Name); err != nil || kept && !s.Volume {
			return errors.Join(err, errCacheBehind)
		}
	}
	err := c.onVoter(ctx, func(ctx context.Context, conn Member) error { return conn.RemoveMember(ctx, s.ID) })
	c.changed("remove "+s.Name, err, func(o *plan.Observation) bool {
		return !o.HasMember(func(m plan.MemberState) bool { return m.ID == s.ID })
	}, func() {
		if s.Dead {
			c.notices.replacingMember(s)
		}
		c.notices.memberRemoved(s)
		if s.VoteUndone {
			c.votesUndone = append(c.votesUndone, c.cfg.Clock.Now())
		}
	})
	if err != nil || s.Pod == "" {
		return err
	}
	return c.deletePod(ctx, plan.DeletePod{Name: s.Name, UID: s.Pod, Why: s.Why.String()})
}

// stay asks the API server whether pods are there and stay. The next pass sees the ones that are being deleted.
func (c *Cluster) stay(ctx context.Context, pods []plan.PodRef) error {
	for _, p := range pods {
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.UID != p.UID:
			return fmt.Errorf("pod %s of a member that stays is gone: %w", p.Name, errCacheBehind)
		case err != nil:
			return fmt.Errorf("pod %s of a member that stays: %w", p.Name, err)
		case pod.DeletionTimestamp != nil || manifest.PodStateOf(pod).Finished:
			c.podWrites.record(pod, c.cfg.Clock.Now())
			return fmt.Errorf("pod %s of a member that stays is being deleted, or has ended: %w", p.Name, errCacheBehind)
		}
	}
	return nil
}

func (c *Cluster) moveLeader(ctx context.Context, s plan.MoveLeader) error {
	conn, known := c.importer.conns[s.Former]
	if s.Former == 0 {
		var err error
		if conn, err = c.etcd.Conn(etcd.Endpoint{URL: manifest.NamesOf(c.obj).ClientURL(s.From), IP: s.IP}); err != nil {
			return err
		}
	} else if !known {
		return errNoQuorum
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := conn.MoveLeader(ctx, s.ID); err != nil {
		return err
	}
	c.notices.leaderMoved(s)
	return nil
}

// advanceLog appends a batch of entries. The pass then ends, so that the operator observes the
// cluster between two batches.
func (c *Cluster) advanceLog(ctx context.Context, s plan.AdvanceLog) error {
	const part = 2500
	c.logTarget, c.logCount = s.To, s.Count
	return c.onMember(ctx, c.change, changeTimeout, func(ctx context.Context, conn Member) error {
		return conn.AdvanceLog(ctx, int(min(s.To-s.From, part)))
	})
}
