// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderservice keeps a Service that leads to one pod: to the instance of an
// operator that leads. The Service has no selector; the leader writes its own address
// into an EndpointSlice. So who asks the Service never asks an instance that stands
// by, and the readiness of those is not mixed up with it.
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
	// checkInterval is how often Service and slices are looked at. Two reads in that
	// time are little for an API server, and a watch of all Services and slices of the
	// namespace would be more: the operator has no other use for it. Who edits one is
	// put right within this time, and clients come back until then.
	checkInterval = 10 * time.Second
	// firstRetry is the wait after a failure; each further one is twice as long, up
	// to checkInterval.
	firstRetry = time.Second
	// removalLimit bounds the end. When a Lease is lost, all work has to end within
	// two seconds (internal/leader).
	removalLimit = 1500 * time.Millisecond
)

// Config says which Service to keep, and where it leads.
type Config struct {
	Kube kubernetes.Interface
	// Namespace of the operator and of the Service; Name of the Service and of its
	// EndpointSlice.
	Namespace, Name string
	// Pod is the name of the operator's own pod. Where there is no such pod, the
	// operator runs outside of Kubernetes, and the Service leads to the address that
	// it reaches the API server from.
	Pod string
	// Port of the Service, and the one that the operator listens on.
	Port, ListenPort int32
	// APIServer is its host and port, for an operator outside of Kubernetes; "": as
	// Kube has it.
	APIServer string
	Logger    *logrus.Entry
}

// Keeper keeps the Service.
type Keeper struct {
	cfg Config
	log *logrus.Entry
	// self is where the Service leads; nil: not known yet. A pod's addresses last as
	// long as its processes.
	self *self

	mu      sync.Mutex
	problem error
}

// New returns a Keeper; nothing happens before Run.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, log: cfg.Logger.WithField("service", cfg.Namespace+"/"+cfg.Name)}
}

// Run keeps the Service until ctx ends, which is while this instance leads. Then it
// removes the address, so that requests fail at once instead of waiting for a pod
// that is gone, and returns.
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

// Problem is why the Service is not as it should be, as far as is known; nil: it is, or
// it will be in a moment.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(k.problem, errAgain) {
		return nil
	}
	return k.problem
}

// note remembers a problem, and tells it when it is a new one.
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
		k.log.WithError(err).Warn("the Service of this operator can't be kept: trying again")
	case err == nil && before != nil:
		k.log.Info("the Service of this operator is kept again")
	}
}

// errAgain is wrapped where a step was done and another one follows.
var errAgain = errors.New("looked at again in a moment")

// Keep looks at Service and slices once, and puts them right.
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
