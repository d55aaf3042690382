// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// statusTimeout bounds the question to one member how it is. All are asked
	// at once, so that a dead one costs a pass this much and no more.
	statusTimeout = 2 * time.Second
	// listTimeout bounds the linearizable reads of the membership, listPatience
	// how long one member is asked alone.
	listTimeout  = 3 * time.Second
	listPatience = time.Second
)

// errOtherMember is the answer of an address that was given to another pod
// meanwhile.
var errOtherMember = errors.New("another member answers at its address")

// observe looks at pods and Services through the informers' caches and at the
// membership and health through etcd.
func (c *Cluster) observe(ctx context.Context) (*observation, error) {
	o := &observation{
		now:       c.cfg.Clock.Now(),
		names:     namesOf(c.obj),
		spec:      *c.obj.Spec.DeepCopy(),
		status:    *c.status.DeepCopy(),
		newName:   namesOf(c.obj).newMember,
		ending:    c.obj.DeletionTimestamp != nil,
		gate:      busyboxImage(&c.obj.Spec) == "",
		logTarget: c.logTarget,
	}
	c.postponed.forget(o.now)
	o.record, o.accepted = o.status.Record, c.obj.Annotations[acceptAnnotation]
	if c.memory != nil {
		o.record = c.memory
	}
	if o.spec.Version == "" && o.status.CurrentVersion != "" {
		// A newer operator with a newer default must not upgrade etcd by itself.
		o.spec.Version = o.status.CurrentVersion
	}
	if source, err := api.SeedBackupOf(c.obj); err != nil {
		o.sourceUnreadable = err.Error()
	} else {
		o.source = source
	}
	if c.refused.current(c.obj.Generation, o.now) {
		o.refused = c.refused
	}
	if errs := api.ValidateEtcdCluster(c.obj); len(errs) > 0 {
		o.invalid = errs.ToAggregate().Error()
	} else if _, err := etcd.ParseVersion(c.obj.Spec.EffectiveVersion()); err != nil {
		o.invalid = err.Error()
	}
	var err error
	if err = c.observeBelongings(o); err != nil {
		return nil, err
	}
	if err := c.observeCertificates(ctx, o); err != nil {
		return nil, err
	}
	if !o.certificates.unknownCAs() {
		if o.template, err = c.template(); err != nil {
			return nil, err
		}
		o.updateRefused = c.refusals.of(updateOf(o.template), o.now)
	}
	if err := c.observePods(ctx, o); err != nil {
		return nil, err
	}
	if err := c.observeVolumes(o); err != nil {
		return nil, err
	}
	o.liftPutOff = c.postponed.holds(liftingOfAlarms, o.now)
	c.observeMembers(ctx, o)
	if err := c.findUnlabelled(ctx, o); err != nil {
		return nil, err
	}
	return o, nil
}

func (c *Cluster) observePods(ctx context.Context, o *observation) error {
	cached, err := c.cfg.Pods.Pods(c.obj.Namespace).List(labels.SelectorFromSet(o.names.labels()))
	if err != nil {
		return fmt.Errorf("pods of the cluster: %w", err)
	}
	pods, doubtful := c.podWrites.merge(cached, o.now)
	for _, name := range doubtful {
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			c.podWrites.forget(name)
			pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Name == name })
		case err != nil:
			return fmt.Errorf("pod %s: %w", name, err)
		default:
			c.podWrites.record(pod, o.now)
			if err := c.relabel(ctx, pod); err != nil {
				return err
			}
		}
	}
	for _, pod := range pods {
		if !metav1.IsControlledBy(pod, c.obj) {
			if pod.DeletionTimestamp == nil {
				o.strangers++
			}
			continue
		}
		p := podStateOf(pod)
		c.sightings.see(&p, pod, o.now)
		p.metadataOutdated = metadataOutdated(c.obj, pod, o.template) && !c.postponed.holds(metadataOf(pod.Name), o.now)
		p.notePutOff = c.postponed.holds(noteOn(pod.Name), o.now)
		if at, ok := c.deleted[p.uid]; ok && !p.deleting {
			p.deleting, p.deleteBy = true, at.Add(deleteMargin+podGrace(pod))
		}
		if before, ok := c.restarting[p.uid]; ok {
			// Until the kubelet has seen the restart, it reports how etcd was
			// before it.
			if p.restarts > before {
				delete(c.restarting, p.uid)
			} else {
				p.ready = false
			}
		}
		o.pods = append(o.pods, p)
	}
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(o.pods, func(p podState) bool { return p.uid == uid })
	}
	maps.DeleteFunc(c.restarting, func(uid types.UID, _ int32) bool { return gone(uid) })
	c.sightings.forget(gone)
	maps.DeleteFunc(c.deleted, func(uid types.UID, _ time.Time) bool { return gone(uid) })
	return nil
}

func podGrace(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
}

// observeVolumes looks at the PersistentVolumeClaims of the cluster.
func (c *Cluster) observeVolumes(o *observation) error {
	claims, err := c.cfg.Volumes.PersistentVolumeClaims(c.obj.Namespace).List(labels.SelectorFromSet(o.names.labels()))
	if err != nil {
		return fmt.Errorf("volumes of the cluster: %w", err)
	}
	for _, claim := range claims {
		if !metav1.IsControlledBy(claim, c.obj) {
			continue
		}
		v := volumeStateOf(claim)
		if c.deletedVolumes[v.uid] {
			v.deleting = true
		}
		v.putOff = c.postponed.holds(changeOf(v.name), o.now)
		v.refusedSize = c.refusals.of(sizeOf(c.obj, v.name), o.now)
		o.volumes = append(o.volumes, v)
	}
	slices.SortFunc(o.volumes, func(a, b volumeState) int { return cmp.Compare(a.name, b.name) })
	maps.DeleteFunc(c.deletedVolumes, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(o.volumes, func(v volumeState) bool { return v.uid == uid })
	})
	return nil
}

// answer is what one member said of itself.
type answer struct {
	pod    podState
	conn   Member
	status *etcd.Status
	err    error
	// stalled is true where no read through it is confirmed.
	stalled bool
}

func (c *Cluster) observeMembers(ctx context.Context, o *observation) {
	answers := c.ask(ctx, o)
	c.seeTLS(o, answers)
	list := c.list(ctx, o, answers)
	findStalled(ctx, o, answers)
	for _, m := range list {
		name := o.names.memberAt(m.Host())
		if name == "" && (o.pod(m.Name) != nil || o.volume(m.Name) != nil) {
			name = m.Name // somebody has changed its peer URL
		}
		state := memberState{Member: m, name: name, pod: o.pod(name), volume: o.volume(name)}
		if i := slices.IndexFunc(answers, func(a answer) bool { return a.pod.name == name }); i >= 0 {
			state.err = answers[i].err
			switch s := answers[i].status; {
			case s != nil && s.MemberID == m.ID:
				state.status, state.stalled = s, answers[i].stalled
			case s != nil:
				state.err = errOtherMember
			}
		}
		o.members = append(o.members, state)
	}
	c.health.track(o)
	o.mislabels = c.mislabels.learn(o)
	c.copies.look(ctx, o, c.etcd.ReceivesSnapshot)
	c.leaderless = leaderless(o, c.leaderless)
	o.leaderlessSince = c.leaderless
	if o.quorum && o.outdated() {
		var err error
		if o.clusterVersion, err = within(ctx, statusTimeout, c.change.ClusterVersion); err != nil {
			c.log.WithError(err).Debug("the cluster's version is not known")
		}
	}
}

// ask asks every running member for its status, all at once.
func (c *Cluster) ask(ctx context.Context, o *observation) []answer {
	var answers []answer
	endpoints := map[etcd.Endpoint]bool{}
	for _, p := range o.pods {
		if _, removed := c.deleted[p.uid]; removed || !p.running || p.ip == "" {
			continue
		}
		ep := etcd.Endpoint{URL: o.names.clientURL(p.name), IP: p.ip}
		endpoints[ep] = true
		// A member that can't be asked is one that does not answer: the others
		// are, and what is known is told.
		conn, err := c.conn(o, ep)
		answers = append(answers, answer{pod: p, conn: conn, err: err})
	}
	c.etcd.Retain(endpoints)

	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i := range answers {
		if answers[i].err != nil {
			continue
		}
		asked.Go(func() {
			answers[i].err = recovered(func() error {
				status, err := answers[i].conn.Status(ctx)
				if err == nil {
					answers[i].status = &status
				}
				return err
			})
		})
	}
	asked.Wait()
	return answers
}

// list lists the membership. It asks a member that knows a leader for what the
// quorum has agreed on, the leader first; without one it takes what the most
// advanced member remembers.
func (c *Cluster) list(ctx context.Context, o *observation, answers []answer) []etcd.Member {
	c.change = nil
	live := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.status == nil || a.status.Learner })
	leads := func(a answer) int {
		switch a.status.LeaderID {
		case a.status.MemberID:
			return 0
		case 0:
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(live, func(a, b answer) int {
		return cmp.Or(cmp.Compare(leads(a), leads(b)), -cmp.Compare(a.status.RaftIndex, b.status.RaftIndex))
	})
	if members, through := agreed(ctx, o, slices.DeleteFunc(slices.Clone(live), func(a answer) bool { return leads(a) == 2 })); through != nil {
		o.quorum = true
		c.change = through.conn
		o.testify(ctx, *through)
		return members
	}
	for _, a := range live {
		members, err := within(ctx, statusTimeout, a.conn.LocalMembers)
		if err == nil && belongs(o, members, a) {
			return members
		}
	}
	return nil
}

// agreed is the membership that a quorum has agreed on, and the member that told
// it; nil without one. The first is asked alone for a moment, then all the others
// as well: members that were cut off keep claiming to know a leader, and the look
// must not take longer the more of them there are.
func agreed(ctx context.Context, o *observation, candidates []answer) ([]etcd.Member, *answer) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	type reply struct {
		members []etcd.Member
		from    *answer
	}
	replies := make(chan reply, len(candidates))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	ask := func(a *answer) {
		asking.Go(func() {
			var members []etcd.Member
			err := recovered(func() (err error) {
				members, err = a.conn.Members(ctx)
				return err
			})
			if err != nil || !belongs(o, members, *a) {
				members = nil
			}
			replies <- reply{members, a}
		})
	}
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	asked := 0
	askNext := func() {
		if asked < len(candidates) {
			ask(&candidates[asked])
			asked++
		}
	}
	askNext()
	for answered := 0; answered < asked; {
		select {
		case r := <-replies:
			if answered++; r.members != nil {
				return r.members, r.from
			}
		case <-patience.C:
		}
		for asked < len(candidates) {
			askNext()
		}
	}
	return nil, nil
}

// belongs checks that a membership holds the member that gave it: else a pod's
// address now belongs to an etcd of another cluster.
func belongs(o *observation, members []etcd.Member, a answer) bool {
	return slices.ContainsFunc(members, func(m etcd.Member) bool {
		return m.ID == a.status.MemberID && (o.names.memberAt(m.Host()) == a.pod.name || m.Name == a.pod.name)
	})
}

func within[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// healthLog remembers since when each member has not been healthy.
type healthLog map[uint64]time.Time

// track fills in downSince and forgets members that are gone.
func (h healthLog) track(o *observation) {
	current := map[uint64]bool{}
	for i := range o.members {
		m := &o.members[i]
		current[m.ID] = true
		if m.healthy() {
			// Without a quorum nobody asked whether the member confirms reads.
			if o.quorum {
				delete(h, m.ID)
			}
			continue
		}
		if _, known := h[m.ID]; !known {
			h[m.ID] = o.now
		}
		m.downSince = h[m.ID]
	}
	for id := range h {
		if len(o.members) > 0 && !current[id] {
			delete(h, id)
		}
	}
}
