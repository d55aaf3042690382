// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/version"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/openshift"
)

// run runs the operator until ctx ends.
func run(ctx context.Context, opts options, log *logrus.Entry) error {
	return operator.Program{
		Name: program, Flags: opts.Flags, Log: log,
		New: func(ctx context.Context, s operator.Surroundings) (operator.Controller, error) {
			return newController(ctx, opts, s)
		},
	}.Run(ctx)
}

func newController(ctx context.Context, opts options, s operator.Surroundings) (*controller.Controller, error) {
	image := opts.operatorImage
	if image == "" {
		var err error
		image, err = s.Self.Image(ctx, s.Clients.Kube.CoreV1(), program, s.Log)
		if err != nil {
			return nil, fmt.Errorf("find the image of the init container of members (or name it with -operator-image): %w", err)
		}
	}
	return controller.New(controller.Config{
		Namespace:     s.Self.Namespace,
		ClusterWide:   opts.ClusterWide,
		CreateCRD:     opts.CreateCRD,
		Version:       version.Version,
		OperatorImage: image,
		ReservedIDs:   openshift.New(s.Clients.Kube, clock.RealClock{}).ReservedIDs,
		GCInterval:    opts.gcInterval,
		ChaosLevel:    opts.chaosLevel,
		Kube:          s.Clients.Kube,
		EtcdClusters:  s.Clients.Etcd,
		Dynamic:       s.Clients.Dynamic,
		CRDs:          s.Clients.CRDs,
		Recorder:      s.Recorder,
		Registry:      s.Registry,
		Logger:        s.Log,
		Clock:         clock.RealClock{},
		Rand:          rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), // chooses victims of tests
	})
}
