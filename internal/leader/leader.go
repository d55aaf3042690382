// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader lets one instance of an operator work at a time: the holder of a Lease.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

	// stopGrace is how long the work may take to stop after the Lease is lost.
	stopGrace = 2 * time.Second
	// workDuration is how long the work may continue after the begin of the last renewal. Another
	// instance may lead LeaseDuration after the API server had that renewal, however late its answer
	// was. client-go counts RetryPeriod and RenewDeadline from the answer.
	workDuration = LeaseDuration - stopGrace - time.Second/2
)

// ErrLost is wrapped by the error of Run if this instance could not keep the Lease. The
// process should end: its view of the cluster may be outdated.
var ErrLost = errors.New("leadership lost")

// Config names the Lease, and the identity that holds it.
type Config struct {
	// Leases should be a client with a rate limit of its own. Otherwise the work can use up
	// the limit and delay a renewal.
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

// New returns an Elector, which does nothing before Run.
func New(cfg Config) (*Elector, error) {
	if cfg.Namespace == "" || cfg.Name == "" || cfg.Identity == "" {
		return nil, fmt.Errorf("leader election needs the namespace (%q) and name (%q) of the Lease and an identity (%q)", cfg.Namespace, cfg.Name, cfg.Identity)
	}
	return &Elector{cfg: cfg, lock: &observedLock{
		log:   cfg.Logger,
		taken: make(chan struct{}),
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.Name},
			Client:     cfg.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
		},
	}}, nil
}

// Leading reports whether this instance leads.
func (e *Elector) Leading() bool { return e.leading.Load() }

// Watched names the Lease that this instance competes for, and the last holder that it has
// seen.
func (e *Elector) Watched() string {
	lease := "Lease " + e.cfg.Namespace + "/" + e.cfg.Name
	if seen := e.lock.seen.Load(); seen != nil && seen.holder != "" {
		return lease + ", which " + seen.holder + " holds"
	}
	return lease
}

// StandingBy returns nil while this instance is ready to take over: it reads the Lease and
// sees another holder. The error says what is missing, and why.
func (e *Elector) StandingBy() error {
	seen := e.lock.seen.Load()
	lease := e.cfg.Namespace + "/" + e.cfg.Name
	var missing string
	switch {
	case seen == nil:
		missing = fmt.Sprintf("not leading, and Lease %s was not read yet", lease)
	case time.Since(seen.at) > LeaseDuration:
		missing = fmt.Sprintf("not leading, and Lease %s was not read since %s", lease, seen.at.Format(time.RFC3339))
	case seen.holder == "" || seen.holder == e.cfg.Identity:
		missing = fmt.Sprintf("about to lead: nobody else holds Lease %s", lease)
	default:
		return nil
	}
	if failure := e.lock.failure.Load(); failure != nil {
		return fmt.Errorf("%s: %w", missing, *failure)
	}
	return errors.New(missing)
}

// Run waits until this instance leads. It then runs work until ctx ends, work returns or this
// instance loses the Lease. Run cancels work's context and waits for its return before it
// releases the Lease. So two instances never work at once, and the next one need not wait for
// the Lease to expire.
//
// There is one exception: after a lost Lease, Run waits for stopGrace only, less than the rest
// of the Lease's time. It then returns ErrLost even if work hangs, and the process must exit.
func (e *Elector) Run(ctx context.Context, work func(context.Context) error) error {
	// The election continues while the work stops, whatever ended ctx.
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
		// With true, client-go would also release after a failed renewal, while the work
		// continues.
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
		e.release(ctx) // this instance may have won it just now
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
	case <-e.lapsed(electing):
		stopElecting()
	case <-e.lock.taken:
		// client-go would ask for the Lease again until RenewDeadline.
		stopElecting()
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

// lapsed returns a channel that closes when the last renewal began workDuration ago. It ends with ctx.
func (e *Elector) lapsed(ctx context.Context) <-chan struct{} {
	lapsed := make(chan struct{})
	go func() {
		for {
			left := workDuration
			if renewed := e.lock.renewed.Load(); renewed != nil {
				left -= time.Since(*renewed)
			}
			if left <= 0 {
				close(lapsed)
				return
			}
			timer := time.NewTimer(left)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}()
	return lapsed
}

// release gives up the Lease if this instance holds it, so that the next one need not wait
// until it expires. The election must have ended.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := e.tryRelease(ctx); err != nil {
		e.cfg.Logger.WithError(err).Warnf("could not release Lease %s: the next instance waits until it expires, %s", e.lock.Describe(), LeaseDuration)
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

// observedLock remembers the last read of the Lease, and the begin of its last renewal by this
// instance. It notices when another instance takes the Lease from this one, as happens after
// somebody deleted it, or after a pause in which this machine's clocks stood still.
type observedLock struct {
	resourcelock.Interface
	log     *logrus.Entry
	seen    atomic.Pointer[sighting]
	renewed atomic.Pointer[time.Time]
	taken   chan struct{} // closed when another holder is seen after this instance held the Lease
	once    sync.Once
	failure atomic.Pointer[error] // of the last request; nil: it had none
}

type sighting struct {
	holder string
	at     time.Time
}

func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.answered(err)
	if err != nil {
		return record, raw, err
	}
	before := l.seen.Swap(&sighting{record.HolderIdentity, time.Now()})
	other := record.HolderIdentity != "" && record.HolderIdentity != l.Identity()
	if other && l.renewed.Load() != nil {
		l.once.Do(func() { close(l.taken) })
	}
	if other && (before == nil || before.holder != record.HolderIdentity) {
		l.log.WithFields(logrus.Fields{"lease": l.Describe(), "holder": record.HolderIdentity}).Info("standing by: another instance leads")
	}
	return record, raw, nil
}

func (l *observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begun := time.Now()
	return l.ended(begun, l.Interface.Create(ctx, record))
}

func (l *observedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begun := time.Now()
	return l.ended(begun, l.Interface.Update(ctx, record))
}

// answered notes how a request has ended. A missing Lease is created next.
func (l *observedLock) answered(err error) {
	if err == nil || apierrors.IsNotFound(err) {
		l.failure.Store(nil)
	} else {
		l.failure.Store(&err)
	}
}

// ended notes the begin of a write of the Lease that has succeeded.
func (l *observedLock) ended(begun time.Time, err error) error {
	l.answered(err)
	if err == nil {
		l.renewed.Store(&begun)
	}
	return err
}
