// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/fair"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// Period is the longest time between two passes, even if the operator saw no change. The
// operator polls etcd, and watches Kubernetes.
const Period = 8 * time.Second

const (
	// shortestWait and longestWait bound the time between two checks of something that sends
	// no event, such as a learner that catches up.
	shortestWait = 100 * time.Millisecond
	longestWait  = time.Second
	// failuresToTell is the number of failed passes in a row before an event.
	failuresToTell = 4
)

// Config is what all clusters of an operator share.
type Config struct {
	Kube         kubernetes.Interface
	EtcdClusters versioned.Interface
	// Pods, Services, Volumes and Budgets come from informers with the label app=etcd. Nobody
	// may write to their objects.
	Pods     corelisters.PodLister
	Services corelisters.ServiceLister
	Volumes  corelisters.PersistentVolumeClaimLister
	Budgets  policylisters.PodDisruptionBudgetLister
	Recorder record.EventRecorder
	Logger   *logrus.Entry
	Metrics  *Metrics
	// OperatorImage is the image of the check-dns init container; it holds
	// /usr/local/bin/etcd-operator.
	OperatorImage string
	// ReservedIDs returns the IDs that the platform reserves for the pods of a namespace; nil:
	// it reserves none.
	ReservedIDs func(ctx context.Context, namespace string) (manifest.ReservedIDs, error)
	Clock       clock.Clock
	// StatusMissing is called if the API server knows an EtcdCluster and not its status
	// subresource; may be nil.
	StatusMissing func()
	// Members returns the client for the members of a cluster, one for each cluster. Default:
	// MembersOverNetwork.
	Members func() Members
	// Survey looks at an etcd to import. Default: importsource.Source.Look.
	Survey func(context.Context, *importsource.Source) importsource.Facts
	// Period defaults to the constant Period.
	Period time.Duration
	// Passes limits how many passes of all clusters begin in a second; nil: nothing does.
	Passes *fair.Limiter
}

// Cluster manages one EtcdCluster. All fields except the mailbox belong to the goroutine of
// Run.
type Cluster struct {
	*loop.Mailbox[*api.EtcdCluster]
	cfg Config
	log *logrus.Entry

	rest rest

	obj *api.EtcdCluster // own copy of the newest object
	// literalTags is the last observation's.
	literalTags bool
	// tolerated is not nil if obj has another spec than the user's.
	tolerated *tolerated
	// status is what was last written. It may be newer than obj's.
	status api.ClusterStatus

	etcd   Members
	change Member // member for membership changes; nil without a quorum
	// otherVoters know a leader as well.
	otherVoters []Member
	certForms   manifest.CertForms // of the Secrets in the spec
	certs       certReader
	user        userReader
	auth        authReader
	importer    importer
	votesUndone []time.Time // of members that somebody else has promoted
	bridges     bridges
	podWrites   podWrites
	shown       map[string]types.UID    // pods of the last observation that nobody had deleted
	searched    bool                    // whether findStrays has looked
	deleted     map[types.UID]time.Time // deleted pods, and when
	sightings   sightings
	// deletedVolumes are the deleted volumes, and when.
	deletedVolumes map[types.UID]bool
	// restarting holds the pods whose image the operator has changed, with etcd's restart count
	// before the change.
	restarting  map[types.UID]int32
	logTarget   uint64
	logCount    uint64
	refused     plan.RefusedPods
	postponed   postponed
	corrections corrections
	repeats     repeats
	// paused is the last step that was paused because of its repeats, for the log.
	paused string
	// budgetWritten is the last number written into the budget.
	budgetWritten int
	unanswered    unanswered
	unconnected   unconnected
	health        healthLog
	quorum        quorumLog
	marks         markLog
	recovery      recoveryReader
	unconfirmed   unconfirmedLog
	mislabels     mislabels
	copies        copies
	notices       notices
	waits         int // checks in a row of something under way
	failures      int // failed passes in a row
	// doubtful is true while a quorum serves and most voters do not confirm it: some may be
	// ending at this moment. It is also true while nobody can write because of a copy.
	doubtful bool
	// leaderless is the last observation's leaderlessSince.
	leaderless time.Time
	lastStep   string
	// memory is the record of the last pass that saw a quorum, or nil. dropsRecord is true if
	// the API server does not keep the record in status.
	memory      *api.ClusterRecord
	dropsRecord bool
	standstill  standstill
}

// New returns the Cluster of an EtcdCluster, which does nothing before Run.
func New(cfg Config, obj *api.EtcdCluster) (*Cluster, error) {
	if obj.UID == "" {
		return nil, fmt.Errorf("EtcdCluster %s/%s has no UID: it did not come from an API server", obj.Namespace, obj.Name)
	}
	if cfg.Period == 0 {
		cfg.Period = Period
	}
	if cfg.Survey == nil {
		cfg.Survey = func(ctx context.Context, s *importsource.Source) importsource.Facts { return s.Look(ctx) }
	}
	if cfg.Members == nil {
		cfg.Members = MembersOverNetwork
	}
	obj = obj.DeepCopy()
	c := &Cluster{
		cfg:            cfg,
		log:            cfg.Logger.WithFields(logrus.Fields{"cluster-namespace": obj.Namespace, "cluster-name": obj.Name}),
		Mailbox:        loop.NewMailbox[*api.EtcdCluster](),
		obj:            obj,
		status:         *obj.Status.DeepCopy(),
		etcd:           cfg.Members(),
		podWrites:      podWrites{},
		deleted:        map[types.UID]time.Time{},
		sightings:      newSightings(),
		deletedVolumes: map[types.UID]bool{},
		unanswered:     unanswered{},
		restarting:     map[types.UID]int32{},
		postponed:      postponed{},
		corrections:    corrections{},
		repeats:        repeats{},
		bridges:        bridges{},
		health:         healthLog{},
		mislabels:      newMislabels(),
		copies:         copies{},
	}
	c.notices = notices{Board: notice.Board[*api.EtcdCluster]{Recorder: cfg.Recorder, Log: c.log, Object: obj}, stuck: map[string]stuckPod{}, refused: map[string]string{}}
	return c, nil
}

// Run manages the cluster until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	c.log.WithFields(logrus.Fields{"size": c.obj.Spec.Size, "version": c.obj.Spec.EffectiveVersion(), "phase": c.status.Phase}).Info("managing the cluster")
	defer c.log.Info("no longer managing the cluster")
	defer c.etcd.Close()
	defer c.importer.end()
	defer c.cfg.Metrics.forget(c.obj)

	loop.Run(ctx, c.cfg.Clock, c.Mailbox, loop.Reconciler[*api.EtcdCluster]{
		Take: c.take, Woken: c.woken, Pass: c.admitted,
	})
}

// admitted makes a pass when the limit of all clusters allows it.
func (c *Cluster) admitted(ctx context.Context) time.Duration {
	if c.cfg.Passes != nil && c.cfg.Passes.Wait(ctx) != nil {
		return c.cfg.Period
	}
	return c.reconcile(ctx)
}

// woken notes that an object of the cluster has changed.
func (c *Cluster) woken() {
	c.waits = 0
	c.rest.end()
}

// take continues with a newer state of the object and of its status: somebody else may have
// changed it. A state older than the last write says nothing new; the result of that write
// comes next.
func (c *Cluster) take(obj *api.EtcdCluster) {
	if loop.Outdated(obj, c.obj) {
		return
	}
	c.forgetOther(&obj.Status)
	c.obj, c.notices.Object, c.tolerated = obj, obj, nil
	c.status = *obj.Status.DeepCopy()
	c.woken()
}

// reconcile runs one pass and returns how long the next may wait.
func (c *Cluster) reconcile(ctx context.Context) time.Duration {
	start := c.cfg.Clock.Now()
	if c.undisturbed(ctx, start) {
		c.cfg.Metrics.state.passEnded(c.obj, start, 0)
		return c.untilLook()
	}
	s, err := c.pass(ctx)
	c.cfg.Metrics.observePass(c.obj, c.cfg.Clock.Since(start))
	defer func() { c.cfg.Metrics.state.passEnded(c.obj, c.cfg.Clock.Now(), c.failures) }()
	switch {
	case ctx.Err() != nil:
		return c.cfg.Period
	case err == nil:
		c.failures = 0
	case isNotYet(err) && !errors.Is(err, errStatusNotWritten):
		c.log.WithError(err).Debugf("not yet: %s", s)
		return c.nextLook()
	default:
		c.failures++
		c.cfg.Metrics.passFailed()
		c.log.WithError(err).Errorf("pass failed at: %s", s)
		if c.failures == failuresToTell {
			c.notices.passFails(s, err)
		}
		return loop.ErrorWait(c.failures, c.cfg.Period)
	}
	switch s.(type) {
	case plan.Idle:
		if c.doubtful {
			return c.nextLook()
		}
		c.waits = 0
		if c.rest.looks > 0 {
			return c.untilLook()
		}
		return c.cfg.Period
	case plan.Wait:
		return c.nextLook()
	case plan.WaitForPod:
		if c.doubtful {
			return c.nextLook()
		}
		// A thousand clusters that restart wait long for a busy API server. Checks of etcd would cost
		// most of the processor time, and find nothing.
		c.waits = 0
		return c.cfg.Period
	default:
		c.waits = 0
		return 0
	}
}

// nextLook spaces the checks of something under way: soon at first, then less often.
func (c *Cluster) nextLook() time.Duration {
	c.waits++
	return min(shortestWait+shortestWait*time.Duration(c.waits/5), longestWait)
}

// pass observes, plans one step, writes the status, and applies the step.
func (c *Cluster) pass(ctx context.Context) (plan.Step, error) {
	c.rest.end()
	o, err := c.observe(ctx)
	if err != nil {
		return observing{}, err
	}
	c.literalTags = o.LiteralTags()
	c.tellUnanswered(o)
	s := plan.Plan(o)
	c.marks.planned(s)
	if s.String() != c.lastStep {
		c.lastStep = s.String()
		c.log.Info(c.lastStep)
	}
	c.doubtful = o.WritesStopped() || o.Quorum && plan.Count(o.Voters(), plan.MemberState.Healthy) < etcd.Quorum(len(o.Voters()))
	c.notices.look(o)
	if !c.triesAgain(s, o.Now) { // it shows nothing new
		c.standstill.look(o, s)
	}
	o.Standstill, o.StandstillSince = c.standstill.text, c.standstill.since
	st := statusAfter(o, s, c.obj.Generation)
	c.cfg.Metrics.state.saw(c.obj, o, &st)
	c.notices.reason = statusReason(o, s, st.Phase)
	err = c.writeStatus(ctx, st)
	if errors.Is(err, notice.ErrNoStatusSubresource) {
		return s, err // an event reports it after some passes
	}
	if err == nil || o.Accepted == "" && !errors.Is(err, errSuperseded) {
		c.remember(o, s, &st)
	}
	if err != nil && (restsOnRecord(s) || replacesBlindly(o, s, err) || errors.Is(err, errSuperseded) || apierrors.IsNotFound(err)) {
		return s, err
	}
	// A failed status write must not stop a replacement.
	applied := c.repeats.begin(s, o.Now)
	if applied == nil {
		applied = c.applyFresh(ctx, o, s)
	} else if c.paused != s.String() {
		c.paused = s.String()
		c.log.WithError(applied).Warnf("pausing: %s", s)
	}
	c.standstill.ended(s, applied)
	if err = errors.Join(err, applied); err == nil {
		c.mayRest(o, s)
	}
	return s, err
}

// freshFor is how old an observation may be when a step takes a member away for a while, or for good. The
// API server may have held the write of the status for a minute, and other members failed meanwhile.
const freshFor = 15 * time.Second

// errOldObservation ends such a step. The next pass looks again.
var errOldObservation = errors.New("what the step rests on is too old: the API server took too long")

// applyFresh applies a step. One that takes a member away must begin and end while the observation is
// new.
func (c *Cluster) applyFresh(ctx context.Context, o *plan.Observation, s plan.Step) error {
	switch s.(type) {
	case plan.RemoveMember, plan.DeletePod, plan.RecyclePod, plan.SetVersion:
	default:
		return c.apply(ctx, s)
	}
	left := freshFor - c.cfg.Clock.Since(o.Now)
	if left <= 0 {
		return errOldObservation
	}
	ctx, cancel := context.WithTimeoutCause(ctx, left, errOldObservation)
	defer cancel()
	return c.apply(ctx, s)
}

// restsOnRecord reports whether a step requires an earlier write of the status.
func restsOnRecord(s plan.Step) bool {
	switch s := s.(type) {
	case plan.ChooseSeed, plan.MarkRunning, plan.MarkFailed, plan.BeginImport, plan.CommitImport, plan.FinishImport,
		plan.StopWrites, plan.RecordStop, plan.ResumeWrites,
		plan.ServeData, plan.StoreSurvivor, plan.RestoreChosen, plan.DeleteRestore:
		return true
	case plan.CreatePods:
		return slices.ContainsFunc(s.Pods, func(p manifest.MemberPod) bool { return p.Seed })
	case plan.CreateService:
		return s.Client
	case plan.WriteBridge:
		return s.First // the record finds the slices again
	case plan.RemoveMember:
		// A cluster that shrinks by several members looks like one that forgot them, unless the
		// record marks each. A replacement is urgent, and one at a time: see replacesBlindly.
		return !s.Dead
	}
	return false
}

// replacesBlindly reports whether a step replaces a member while the status can't be written, and should not.
// If the API server does not answer, what is known of the member's pod is old, and no other pod can take its
// place. If the record does not mark the member and the others are no quorum of it, they look like members
// that forgot it.
func replacesBlindly(o *plan.Observation, s plan.Step, err error) bool {
	r, removes := s.(plan.RemoveMember)
	return removes && r.Dead && (!refused(err) || !o.QuorumOfRecordWithout(r.ID))
}

// observing is the name of a failed observation in errors.
type observing struct{}

func (observing) String() string { return "observe the cluster" }
