// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader makes one instance of an operator work at a time: the one that
// holds a Lease.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The times of the election.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 2 * time.Second

	// stopGrace is how long work may take to stop when the Lease is lost. The
	// last renewal was RetryPeriod and RenewDeadline ago by then, and another
	// instance may lead when LeaseDuration has passed.
	stopGrace = 2 * time.Second
)

// ErrLost is wrapped by the error of Run when the Lease could not be kept. The
// process should end: what it knows may be outdated.
var ErrLost = errors.New("leadership lost")

// Config says which Lease to hold, and as whom.
type Config struct {
	// Leases should have a client of its own: one whose rate limit is used up by
	// the work can't renew in time.
	Leases          coordinationv1.LeasesGetter
	Namespace, Name string
	// Identity is unique among the instances.
	Identity string
	Logger   *logrus.Entry
}

// Elector competes for a Lease.
type Elector struct {
	cfg     Config
	lock    *observedLock
	leading atomic.Bool
}

// New returns an Elector; nothing happens before Run.
func New(cfg Config) (*Elector, error) {
	if cfg.Namespace == "" || cfg.Name == "" || cfg.Identity == "" {
		return nil, fmt.Errorf("leader election needs the namespace (%q) and name (%q) of the Lease and an identity (%q)", cfg.Namespace, cfg.Name, cfg.Identity)
	}
	return &Elector{cfg: cfg, lock: &observedLock{
		log: cfg.Logger,
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.Name},
			Client:     cfg.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
		},
	}}, nil
}

// Leading tells whether this instance works now.
func (e *Elector) Leading() bool { return e.leading.Load() }

// Watched tells which Lease this instance competes for, and who was last seen to
// hold it.
func (e *Elector) Watched() string {
	lease := "Lease " + e.cfg.Namespace + "/" + e.cfg.Name
	if seen := e.lock.seen.Load(); seen != nil && seen.holder != "" {
		return lease + ", which " + seen.holder + " holds"
	}
	return lease
}

// StandingBy returns nil while this instance is ready to take over: it reads the
// Lease and sees that another one holds it. The error says what is missing.
func (e *Elector) StandingBy() error {
	seen := e.lock.seen.Load()
	lease := e.cfg.Namespace + "/" + e.cfg.Name
	switch {
	case seen == nil:
		return fmt.Errorf("not leading, and Lease %s was not read yet", lease)
	case time.Since(seen.at) > LeaseDuration:
		return fmt.Errorf("not leading, and Lease %s was not read since %s", lease, seen.at.Format(time.RFC3339))
	case seen.holder == "" || seen.holder == e.cfg.Identity:
		return fmt.Errorf("about to lead: nobody else holds Lease %s", lease)
	default:
		return nil
	}
}

// Run waits until this instance leads, then does work until ctx ends, work
// returns or the Lease is lost. In each case work was told to stop by its
// context and has returned before the Lease is given up, so that two instances
// never work at once and the next one need not wait for the Lease to expire.
//
// The exception is a lost Lease: after a grace shorter than what is left of the
// Lease's time, Run returns ErrLost even if work hangs, and the end of the
// process ends it.
func (e *Elector) Run(ctx context.Context, work func(context.Context) error) error {
	// The election goes on while the work winds down, whatever ended ctx.
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()

	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          e.lock,
		Name:          e.cfg.Name,
		LeaseDuration: LeaseDuration,
		RenewDeadline: RenewDeadline,
		RetryPeriod:   RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
		},
		// It would also release after a failed renewal, with the work going on.
		ReleaseOnCancel: false,
	})
	if err != nil {
		return fmt.Errorf("set up the election by Lease %s/%s: %w", e.cfg.Namespace, e.cfg.Name, err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electing)
	}()

	select {
	case <-ctx.Done():
		stopElecting()
		<-over
		e.release(ctx) // it may have been won just now
		return nil
	case <-elected:
	}
	e.leading.Store(true)
	defer e.leading.Store(false)
	e.cfg.Logger.WithField("identity", e.cfg.Identity).Info("leading")

	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	worked := make(chan error, 1)
	go func() { worked <- work(working) }()

	select {
	case err := <-worked:
		stopElecting()
		<-over
		e.release(ctx)
		return err
	case <-over:
	}
	stopWork()
	lost := fmt.Errorf("%w: Lease %s/%s could not be renewed for %s, or another instance took it", ErrLost, e.cfg.Namespace, e.cfg.Name, RenewDeadline)
	e.cfg.Logger.WithError(lost).Error("stopping all work")
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-worked:
		return lost
	case <-grace.C:
		return fmt.Errorf("%w; the work did not stop within %s", lost, stopGrace)
	}
}

// release gives the Lease up if this instance holds it, so that the next one
// need not wait until it expires. The election must be over.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := e.tryRelease(ctx); err != nil {
		e.cfg.Logger.WithError(err).Warnf("could not give up Lease %s: the next instance waits until it expires, %s", e.lock.Describe(), LeaseDuration)
	}
}

func (e *Elector) tryRelease(ctx context.Context) error {
	record, _, err := e.lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case record.HolderIdentity != e.cfg.Identity:
		return nil
	}
	now := metav1.Now()
	return e.lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions:    record.LeaderTransitions,
		LeaseDurationSeconds: 1, // a Lease's duration must be positive
		RenewTime:            now,
		AcquireTime:          now,
	})
}

// observedLock remembers what was last read of the Lease.
type observedLock struct {
	resourcelock.Interface
	log  *logrus.Entry
	seen atomic.Pointer[sighting]
}

type sighting struct {
	holder string
	at     time.Time
}

func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	before := l.seen.Swap(&sighting{record.HolderIdentity, time.Now()})
	other := record.HolderIdentity != "" && record.HolderIdentity != l.Identity()
	if other && (before == nil || before.holder != record.HolderIdentity) {
		l.log.WithFields(logrus.Fields{"lease": l.Describe(), "holder": record.HolderIdentity}).Info("standing by: another instance leads")
	}
	return record, raw, nil
}
