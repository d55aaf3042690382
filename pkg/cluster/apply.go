// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// membershipTimeout bounds one change of the membership. It takes as long as a
	// write does; without a quorum it never ends, and until it is given up nobody
	// is told of that.
	membershipTimeout = 4 * time.Second
	// changeTimeout bounds a change of the leader, and a part of the entries that
	// advance the log.
	changeTimeout = 10 * time.Second
)

var (
	// errCacheBehind means that the API server knows more than the cache from
	// which a step was planned. The step is dropped; the next pass sees more.
	errCacheBehind = errors.New("the informer's cache is behind the API server")
	errNoQuorum    = errors.New("no member that takes changes is known")
	// errStatusNotWritten is a failure also where the step came to an end, or has
	// to be tried again: as long as it lasts, people read what was.
	errStatusNotWritten = errors.New("the status could not be written")
)

// apply carries out a step. Steps that are only a record in status are done when
// the status was written, which comes before.
func (c *Cluster) apply(ctx context.Context, s step) error {
	switch s := s.(type) {
	case createService:
		return c.createService(ctx, s)
	case mendService:
		return c.mendService(ctx, s)
	case deleteService:
		return c.deleteService(ctx, s)
	case createBudget:
		return c.createBudget(ctx, s)
	case mendBudget:
		return c.mendBudget(ctx, s)
	case deleteBudget:
		return c.deleteBudget(ctx, s)
	case createPods:
		return c.createPods(ctx, s)
	case deletePod:
		return c.deletePod(ctx, s)
	case setVersion:
		return c.setVersion(ctx, s)
	case recyclePod:
		return c.recyclePod(ctx, s)
	case setMetadata:
		return c.setMetadata(ctx, s)
	case deleteVolume:
		return c.deleteVolume(ctx, s)
	case expandVolume:
		return c.expandVolume(ctx, s)
	case noteMember:
		return c.noteMember(ctx, s)
	case setVolumeVersion:
		return c.setVolumeVersion(ctx, s)
	case addMember:
		return c.addOneMember(ctx, s)
	case promoteMember:
		return c.promoteMember(ctx, s)
	case removeMember:
		return c.removeOneMember(ctx, s)
	case moveLeader:
		return c.moveLeader(ctx, s)
	case advanceLog:
		return c.advanceLog(ctx, s)
	case liftAlarms:
		return c.liftAlarms(ctx, s)
	}
	return nil
}

// createPods makes the pods of a step at the same time; but one after the other
// while the API server refuses some, for each is made to join after those before
// it, and is of no use without them.
func (c *Cluster) createPods(ctx context.Context, s createPods) error {
	if i := slices.IndexFunc(s.pods, func(p newPod) bool { return p.seed }); i >= 0 {
		if err := c.stillBootstrapping(ctx, s.pods[i]); err != nil {
			return fmt.Errorf("bootstrap with %s: %w", s.pods[i].name, err)
		}
	}
	created := make([]*corev1.Pod, len(s.pods))
	errs := make([]error, len(s.pods))
	var making sync.WaitGroup
	for i, p := range s.pods {
		if p.seed {
			p.token = uuid.NewString()
		}
		if c.refused.why != "" {
			if created[i], errs[i] = c.createPod(ctx, p); errs[i] != nil {
				break
			}
			continue
		}
		making.Go(func() {
			errs[i] = recovered(func() (err error) {
				created[i], err = c.createPod(ctx, p)
				return err
			})
		})
	}
	making.Wait()
	err := errors.Join(errs...)
	c.podsEnded(err)
	for i, pod := range created {
		if pod == nil {
			continue
		}
		c.podWrites.record(pod, c.cfg.Clock.Now())
		if s.pods[i].seed {
			c.notices.memberAdded(s.pods[i].name)
		}
	}
	return err
}

// stillBootstrapping asks the API server itself whether the cluster waits for
// this seed. The record of it is not always written in the same pass, and an old
// one must not start an empty cluster beside one that holds data; nor may it start
// on anything else than what the cluster is to be restored from by now.
func (c *Cluster) stillBootstrapping(ctx context.Context, seed newPod) error {
	latest, err := c.latest(ctx)
	if err != nil {
		return err
	}
	st := latest.Status
	if st.Phase != api.ClusterPhaseCreating || !slices.Equal(st.Members.Unready, []string{seed.name}) {
		return c.adopt(latest)
	}
	if source, err := api.SeedBackupOf(latest); err != nil || sourceDigest(source) != sourceDigest(seed.source) {
		return fmt.Errorf("the annotation %s was changed: %w", api.RestoreAnnotation, errors.Join(errCacheBehind, err))
	}
	return nil
}

func (c *Cluster) createPod(ctx context.Context, p newPod) (*corev1.Pod, error) {
	pod, err := c.podOf(p)
	if err != nil {
		return nil, err
	}
	if p.volume && !p.rejoins {
		// A volume costs money; without a pod that uses it, it is deleted again.
		err := c.tryPod(ctx, pod)
		if err == nil {
			err = c.createVolume(ctx, p)
		}
		switch {
		case refused(err):
			return nil, &podRefusedError{p.name, err}
		case err != nil:
			return nil, err
		}
	}
	pods := c.cfg.Kube.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Another instance of the operator has made it just now.
		created, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(created, c.obj) {
			return nil, fmt.Errorf("pod %s exists and belongs to something else", pod.Name)
		}
	}
	switch {
	case refused(err):
		return nil, &podRefusedError{pod.Name, err}
	case err != nil:
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return created, nil
}

func (c *Cluster) deletePod(ctx context.Context, s deletePod) error {
	if s.creating {
		latest, err := c.latest(ctx)
		if err != nil {
			return fmt.Errorf("delete pod %s: %w", s.name, err)
		}
		if latest.Status.Phase != api.ClusterPhaseCreating {
			return c.adopt(latest)
		}
	}
	pods := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace)
	err := pods.Delete(ctx, s.name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.uid))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", s.name, err)
	}
	c.deleted[s.uid] = c.cfg.Clock.Now()
	return nil
}

// setVersion changes the image of a pod in place: the kubelet restarts etcd with
// its data. The UID makes sure that it is the pod that was planned for.
func (c *Cluster) setVersion(ctx context.Context, s setVersion) error {
	asked := image(&c.obj.Spec, s.to)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":         s.uid,
			"annotations": map[string]string{versionAnnotation: s.to, previousVersionAnnotation: s.previous, imageAnnotation: asked},
		},
		"spec": map[string]any{
			"containers": []map[string]string{{"name": etcdContainer, "image": asked}},
		},
	})
	if err != nil {
		return fmt.Errorf("patch of pod %s: %w", s.pod, err)
	}
	pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("set version of pod %s to %s: %w", s.pod, s.to, err)
	}
	c.podWrites.record(pod, c.cfg.Clock.Now())
	if p := podStateOf(pod); p.admitted != s.admitted {
		c.restarting[pod.UID] = p.restarts
	}
	c.notices.memberUpgraded(s)
	return nil
}

// onMember runs a change through the member that lists the membership.
func (c *Cluster) onMember(ctx context.Context, timeout time.Duration, change func(context.Context, Member) error) error {
	if c.change == nil {
		return errNoQuorum
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return change(ctx, c.change)
}

func (c *Cluster) addOneMember(ctx context.Context, s addMember) error {
	err := c.onMember(ctx, membershipTimeout, func(ctx context.Context, conn Member) error {
		_, err := conn.AddMember(ctx, namesOf(c.obj).peerURL(s.name), s.learner)
		return err
	})
	c.changed("add "+s.name, err, func(o *observation) bool {
		return o.hasMember(func(m memberState) bool { return m.name == s.name })
	}, func() { c.notices.memberAdded(s.name) })
	return err
}

func (c *Cluster) promoteMember(ctx context.Context, s promoteMember) error {
	err := c.onMember(ctx, membershipTimeout, func(ctx context.Context, conn Member) error { return conn.PromoteMember(ctx, s.id) })
	c.changed("promote "+s.name, err, func(o *observation) bool {
		return o.hasMember(func(m memberState) bool { return m.ID == s.id && !m.Learner })
	}, func() { c.notices.memberPromoted(s) })
	return err
}

// removeOneMember removes a member from etcd and then deletes its pod. That a pod
// and its data are gone is asked of the API server itself: what is lost with a
// member can't be had back.
func (c *Cluster) removeOneMember(ctx context.Context, s removeMember) error {
	if s.why == podGone {
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s of the member to remove: %w", s.name, err)
		}
		if err == nil && pod.DeletionTimestamp == nil && !podStateOf(pod).finished {
			return errors.Join(c.relabel(ctx, pod), errCacheBehind)
		}
		if kept, err := c.hasVolume(ctx, s.name); err != nil || kept && !s.volume {
			return errors.Join(err, errCacheBehind)
		}
	}
	err := c.onMember(ctx, membershipTimeout, func(ctx context.Context, conn Member) error { return conn.RemoveMember(ctx, s.id) })
	c.changed("remove "+s.name, err, func(o *observation) bool {
		return !o.hasMember(func(m memberState) bool { return m.ID == s.id })
	}, func() {
		if s.dead {
			c.notices.replacingMember(s)
		}
		c.notices.memberRemoved(s)
	})
	if err != nil || s.pod == "" {
		return err
	}
	return c.deletePod(ctx, deletePod{name: s.name, uid: s.pod, why: s.why})
}

func (c *Cluster) moveLeader(ctx context.Context, s moveLeader) error {
	conn, err := c.etcd.Conn(etcd.Endpoint{URL: namesOf(c.obj).clientURL(s.from), IP: s.ip})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := conn.MoveLeader(ctx, s.id); err != nil {
		return err
	}
	c.notices.leaderMoved(s)
	return nil
}

// advanceLog appends a part of the entries, so that the cluster is looked at in
// between.
func (c *Cluster) advanceLog(ctx context.Context, s advanceLog) error {
	const part = 2500
	c.logTarget = s.to
	return c.onMember(ctx, changeTimeout, func(ctx context.Context, conn Member) error {
		return conn.AdvanceLog(ctx, int(min(s.to-s.from, part)))
	})
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
