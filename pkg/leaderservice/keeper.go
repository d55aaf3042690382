// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderservice keeps a Service that leads to one pod: the operator's leader. The
// Service has no selector; the leader writes its own address into an EndpointSlice. So
// requests never reach a standby, and the readiness of standbys does not depend on it.
package leaderservice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
)

const (
	// checkInterval is the time between two checks of the Service and its slices. Two reads in
	// that time are cheap. A watch of all Services and slices of the namespace would cost
	// more, and the operator has no other use for it. After somebody's edit, clients retry for
	// that long.
	checkInterval = 10 * time.Second
	// firstRetry is the wait after a failure. It doubles with each further one, up to
	// checkInterval.
	firstRetry = time.Second
	// removalLimit bounds the removal of the address. When a Lease is lost, all work must end
	// within two seconds (internal/leader).
	removalLimit = 1500 * time.Millisecond
)

// Config names the Service, and where it leads.
type Config struct {
	Kube kubernetes.Interface
	// Namespace of the operator and of the Service; Name of the Service and its EndpointSlice.
	Namespace, Name string
	// Pod is the name of the operator's own pod. If there is no such pod, the operator runs
	// outside of Kubernetes, and the Service leads to the address from which it reaches the
	// API server.
	Pod string
	// Port of the Service, and ListenPort of the operator.
	Port, ListenPort int32
	// APIServer is its host and port, for an operator outside of Kubernetes; "": those of
	// Kube.
	APIServer string
	Logger    *logrus.Entry
}

// Keeper keeps the Service.
type Keeper struct {
	cfg Config
	log *logrus.Entry
	// self is where the Service leads; nil: not known yet. A pod's addresses last as long as
	// its processes.
	self *self

	mu      sync.Mutex
	problem error
}

// New returns a Keeper, which does nothing before Run.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, log: cfg.Logger.WithField("service", cfg.Namespace+"/"+cfg.Name)}
}

// Run keeps the Service while this instance leads, until ctx ends. Then it removes the
// address, so that requests fail at once instead of waiting for an absent pod, and returns.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := time.Duration(0); ; timer.Reset(wait) {
		select {
		case <-ctx.Done():
			k.leave(ctx)
			return
		case <-timer.C:
		}
		err := k.Keep(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			wait = checkInterval
		case wait == 0 || wait == checkInterval && k.Problem() == nil:
			wait = firstRetry
		default:
			wait = min(2*wait, checkInterval)
		}
		k.note(ctx, err)
	}
}

// Problem is the known reason why the Service does not lead here; nil: it does, or will in a
// moment.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(k.problem, errAgain) {
		return nil
	}
	return k.problem
}

// note remembers a problem, and logs it if it is new.
func (k *Keeper) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	before := k.Problem()
	k.mu.Lock()
	k.problem = err
	k.mu.Unlock()
	switch {
	case errors.Is(err, errAgain):
		k.log.Info(err.Error())
	case err != nil && (before == nil || before.Error() != err.Error()):
		k.log.WithError(err).Warn("could not update the Service of this operator: retrying")
	case err == nil && before != nil:
		k.log.Info("the Service of this operator is up to date again")
	}
}

// errAgain is wrapped after a step that another one must follow.
var errAgain = errors.New("the next check follows in a moment")

// Keep checks and corrects the Service and its slices once.
func (k *Keeper) Keep(ctx context.Context) error {
	if k.self == nil {
		found, err := k.findSelf(ctx)
		if err != nil {
			return err
		}
		k.self = found
	}
	service, err := k.keepService(ctx)
	if err != nil {
		return err
	}
	address, kind := k.self.in(service.Spec.IPFamilies)
	return k.keepSlices(ctx, address, kind)
}
