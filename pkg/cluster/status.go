// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// errNoStatusSubresource is the answer to the write of a status whose object exists.
var errNoStatusSubresource = errors.New("the CustomResourceDefinition etcdclusters has no status subresource, as that of an older operator: apply the one of this release")

// statusAfter tells what the status should be, by what was observed and the step
// that was planned from it.
func statusAfter(o *observation, s step, generation int64) api.ClusterStatus {
	st := *o.status.DeepCopy()
	st.ObservedGeneration = generation
	st.ControlPaused = o.spec.Paused
	if o.clientService.ok() {
		st.ServiceName, st.ClientPort = o.clientService.name, clientPort
	}
	st.MinAvailable = o.budget.minAvailable
	setPhase(&st, o, s)
	setMembers(&st, o, s)
	setMemberStatuses(&st, o)
	setVersions(&st, o)
	setRecord(&st, o, s)
	setConditions(&st, o, s)
	steady := st
	keepNumbers(&steady, o.status.MemberStatuses)
	keepRecord(&steady, o.status.Record, o.now)
	if equality.Semantic.DeepEqual(steady, o.status) {
		return steady
	}
	return st
}

func setPhase(st *api.ClusterStatus, o *observation, s step) {
	switch s := s.(type) {
	case chooseSeed:
		st.Phase = api.ClusterPhaseCreating
	case markRunning:
		if v, ok := o.lowestVersion(); ok && st.Phase == api.ClusterPhaseCreating {
			st.InitialVersion = v.String()
		}
		st.Phase = api.ClusterPhaseRunning
	case markFailed:
		st.Phase, st.Reason = api.ClusterPhaseFailed, s.why
		return
	}
	if _, message := o.contradiction(); message != "" {
		st.Reason = message
		return
	}
	if st.Phase == api.ClusterPhaseFailed {
		return // the reason stays as long as the phase
	}
	st.Reason = cmp.Or(refusal(o), certificatesHold(o), podsHeldBack(o), restoring(o, s), o.mislabelledTarget(), o.standstill)
}

// What status and events begin with where a spec is not followed.
const (
	specRefused    = "the spec is refused: "
	versionRefused = "the version is refused: "
)

// refusal says which part of the spec is not followed, and why.
func refusal(o *observation) string {
	if o.invalid != "" {
		return specRefused + o.invalid
	}
	if o.status.Phase == api.ClusterPhaseRunning && o.outdated() {
		if err := o.checkVersion(); err != nil {
			return versionRefused + err.Error()
		}
	}
	return ""
}

// outdated tells whether members run another version than the spec's. One that
// doesn't answer runs what the cluster was last seen to run.
func (o *observation) outdated() bool {
	target := o.spec.EffectiveVersion()
	if o.unheard() {
		return o.status.CurrentVersion != "" && !sameVersion(o.status.CurrentVersion, target)
	}
	return slices.ContainsFunc(o.own(), func(m memberState) bool {
		runs := o.status.CurrentVersion
		if m.status != nil {
			runs = m.status.Version
		}
		if o.mislabelled(m) && m.pod.image == o.image(target) {
			return false // nothing is left to do for it
		}
		return m.pod != nil && m.pod.version != target || m.joined() && !sameVersion(runs, target)
	})
}

// unheard tells whether there may be members, and none of them could say who they are:
// a loaded machine is enough for that. It says nothing of what is under way.
func (o *observation) unheard() bool {
	return o.status.Phase == api.ClusterPhaseRunning && len(o.members) == 0 && len(o.pods)+len(o.volumes) > 0
}

func setMembers(st *api.ClusterStatus, o *observation, s step) {
	if seed, ok := s.(chooseSeed); ok {
		st.Members = api.MembersStatus{Unready: []string{seed.name}}
		st.RestoredFrom = restoredFrom(seed.source)
	}
	if st.Phase == api.ClusterPhaseCreating || st.Phase == api.ClusterPhaseNone {
		return // the seed's name stays on record
	}
	st.Members = api.MembersStatus{}
	for _, p := range o.pods {
		if len(o.members) > 0 && !o.isMember(p.name) {
			continue
		}
		if p.ready && !p.deleting {
			st.Members.Ready = append(st.Members.Ready, p.name)
		} else {
			st.Members.Unready = append(st.Members.Unready, p.name)
		}
	}
	for _, m := range o.own() {
		if m.pod == nil {
			st.Members.Unready = append(st.Members.Unready, m.name)
		}
	}
	slices.Sort(st.Members.Unready)
	st.ReadyMembers = len(st.Members.Ready)
	if len(o.members) > 0 {
		st.Size = len(o.members)
	}
	if len(o.pods) == 0 && len(o.members) == 0 && len(o.volumes) == 0 {
		st.Size = 0
	}
}

func setVersions(st *api.ClusterStatus, o *observation) {
	if v, ok := o.lowestVersion(); ok {
		st.CurrentVersion = v.String()
	}
	switch {
	case o.spec.Paused: // as it was
	case st.CurrentVersion != "" && o.outdated() && o.checkVersion() == nil && o.mislabelledTarget() == "":
		st.TargetVersion = o.spec.EffectiveVersion()
	default:
		st.TargetVersion = ""
	}
}

func setConditions(st *api.ClusterStatus, o *observation, s step) {
	now := o.now.UTC().Format(time.RFC3339)
	set := func(t api.ClusterConditionType, status corev1.ConditionStatus, reason, message string) {
		setCondition(st, now, api.ClusterCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
	lost, _ := o.contradiction()
	if lost != "" || !o.electing() || !conditionIs(st, api.ClusterConditionAvailable, corev1.ConditionTrue) {
		available, reason, message := availability(o, st.Phase)
		set(api.ClusterConditionAvailable, available, reason, message)
	}
	setCertificates(st, o, set)
	if o.spec.Paused {
		return // what was going on is neither going on nor over
	}

	setUpdating(st, o, set)
	voters := count(o.own(), func(m memberState) bool { return !m.Learner })
	dead := deadMembers(o, s)
	recovering := conditionIs(st, api.ClusterConditionRecovering, corev1.ConditionTrue)
	switch {
	case st.Phase == api.ClusterPhaseFailed: // nobody is replaced
		clearCondition(st, api.ClusterConditionRecovering)
		clearCondition(st, api.ClusterConditionScaling)
	case o.quorum && dead == "" && voters == o.spec.Size && len(o.learners()) == 0:
		clearCondition(st, api.ClusterConditionRecovering)
		clearCondition(st, api.ClusterConditionScaling)
	case dead != "":
		set(api.ClusterConditionRecovering, corev1.ConditionTrue, "Replacing dead member", "The dead member "+dead+" is being replaced")
	case recovering || !o.quorum || voters == o.spec.Size || o.surge() && voters > o.spec.Size:
		// goes on until the size is whole
	case voters < o.spec.Size:
		set(api.ClusterConditionScaling, corev1.ConditionTrue, "Scaling up", scalingMessage(voters, o.spec.Size))
	default:
		set(api.ClusterConditionScaling, corev1.ConditionTrue, "Scaling down", scalingMessage(voters, o.spec.Size))
	}

	switch {
	case st.TargetVersion != "":
		set(api.ClusterConditionUpgrading, corev1.ConditionTrue, "Cluster upgrading", "upgrading to "+st.TargetVersion)
	case o.mislabelledTarget() != "":
		set(api.ClusterConditionUpgrading, corev1.ConditionFalse, "Upgrade stopped", o.mislabelledTarget())
	case st.Phase == api.ClusterPhaseRunning && refusal(o) != "" && o.invalid == "":
		set(api.ClusterConditionUpgrading, corev1.ConditionFalse, "Upgrade refused", refusal(o))
	default:
		clearCondition(st, api.ClusterConditionUpgrading)
	}
}

func scalingMessage(current, desired int) string {
	return fmt.Sprintf("Current cluster size: %d, desired cluster size: %d", current, desired)
}

// deadMembers names the voters that are lost or just being removed for it.
func deadMembers(o *observation, s step) string {
	if r, ok := s.(removeMember); ok && r.dead {
		return r.name
	}
	if !o.quorum {
		return ""
	}
	var dead []string
	for _, m := range o.own() {
		if !m.Learner && m.lost(o.now) {
			dead = append(dead, m.name)
		}
	}
	return strings.Join(dead, ", ")
}

func conditionIs(st *api.ClusterStatus, t api.ClusterConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(st.Conditions, func(c api.ClusterCondition) bool { return c.Type == t && c.Status == status })
}

// setCondition writes a condition if it says something new.
func setCondition(st *api.ClusterStatus, now string, c api.ClusterCondition) {
	c.LastUpdateTime, c.LastTransitionTime = now, now
	i := slices.IndexFunc(st.Conditions, func(old api.ClusterCondition) bool { return old.Type == c.Type })
	if i < 0 {
		st.Conditions = append(st.Conditions, c)
		return
	}
	old := st.Conditions[i]
	if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	st.Conditions[i] = c
}

func clearCondition(st *api.ClusterStatus, t api.ClusterConditionType) {
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c api.ClusterCondition) bool { return c.Type == t })
}

// writeStatus writes the status if it differs from what was last written. An
// object that is gone or was made again is no longer this Cluster's.
func (c *Cluster) writeStatus(ctx context.Context, st api.ClusterStatus) error {
	if equality.Semantic.DeepEqual(st, c.status) {
		return nil
	}
	clusters := c.cfg.EtcdClusters.EtcdV1beta2().EtcdClusters(c.obj.Namespace)
	obj := c.obj
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next := obj.DeepCopy()
		next.Status = st
		updated, err := clusters.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			latest, getErr := c.latest(ctx)
			if getErr != nil {
				return getErr
			}
			if !equality.Semantic.DeepEqual(latest.Status, c.status) {
				return c.adopt(latest)
			}
			obj = latest
		}
		if apierrors.IsNotFound(err) {
			// The object is there, or it is not: only one of the two is a definition's fault.
			if _, getErr := c.latest(ctx); getErr == nil {
				if c.cfg.StatusMissing != nil {
					c.cfg.StatusMissing()
				}
				return fmt.Errorf("%w: %s", errNoStatusSubresource, err.Error())
			}
		}
		if err == nil {
			// The next write starts from here; the spec waits for the informer.
			c.obj = c.obj.DeepCopy()
			c.obj.ResourceVersion = updated.ResourceVersion
			if drops := st.Record != nil && updated.Status.Record == nil; drops != c.dropsRecord {
				c.dropsRecord = drops
				if drops {
					c.log.Warn("the API server drops status.record: its CustomResourceDefinition etcdclusters is older than this operator, which remembers what it saw only while it runs")
				}
			}
			if st.RestoredFrom != nil && updated.Status.RestoredFrom == nil {
				return errors.New("the API server drops status.restoredFrom: its CustomResourceDefinition etcdclusters is older than this operator; apply the one of this release")
			}
		}
		return err
	})
	switch {
	case errors.Is(err, errCacheBehind): // there is a newer one
		return fmt.Errorf("write the status: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", errStatusNotWritten, err)
	}
	c.notices.statusChanged(c.status, st)
	c.status = st
	return nil
}

// latest gets the object from the API server.
func (c *Cluster) latest(ctx context.Context) (*api.EtcdCluster, error) {
	latest, err := c.cfg.EtcdClusters.EtcdV1beta2().EtcdClusters(c.obj.Namespace).Get(ctx, c.obj.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if latest.UID != c.obj.UID {
		return nil, apierrors.NewNotFound(api.Resource(api.EtcdClusterResourcePlural), c.obj.Name)
	}
	return latest, nil
}

// adopt takes over a status that another instance of the operator has written.
// What was planned from the older one is void: it may be a bootstrap of a
// cluster that holds data by now.
func (c *Cluster) adopt(latest *api.EtcdCluster) error {
	c.forgetOther(&latest.Status)
	c.status = *latest.Status.DeepCopy()
	return fmt.Errorf("the status was written by somebody else: %w", errCacheBehind)
}
