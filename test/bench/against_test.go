//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

var (
	against  = flag.String("against", "", "manifest of another operator of the same API group")
	patience = flag.Duration("patience", 3*time.Minute, "how long the other operator has for each change")
)

// TestAgainst measures this operator and another one of the same API group in turns, each in a
// namespace of its own. Both get the same EtcdClusters and the same edits, and for both a change
// ends when pods and etcd show it: the status of another operator may say less.
func TestAgainst(t *testing.T) {
	if *against == "" {
		t.Fatal("name the manifest of the other operator with -against")
	}
	d := &duel{t: t}
	ours, theirs := harness.NewQuiet(t), harness.NewForeign(t, *against)
	for round := range *rounds {
		t.Logf("--- round %d of %d", round+1, *rounds)
		d.life(ours, false, round)
		d.life(theirs, true, round)
	}
	fmt.Printf("\n%s\n%s\n", machine(t, ours), d.times.String())
}

type duel struct {
	t     *testing.T
	times comparison
}

// errGivenUp ends a life of the other operator that one of its changes did not end.
var errGivenUp = errors.New("given up")

// life measures a cluster from its creation to an upgrade. The versions begin with a v, which
// both spellings of an image's tag survive: v0.9.4 adds one, and its fork does not.
func (d *duel) life(n *harness.Namespace, other bool, round int) {
	d.t.Helper()
	var cluster *harness.Cluster
	change := func(what string, act func(), gone ...*corev1.Pod) error {
		start := time.Now()
		act()
		limit := harness.Settle
		if other {
			limit = *patience
		}
		err := harness.Try(d.t, limit, func(ctx context.Context) error { return cluster.Serves(ctx, gone...) })
		switch {
		case err == nil:
			d.times.add(what, other, time.Since(start))
			rest(d.t)
			return nil
		case other:
			d.times.fail(what, err.Error())
			return errGivenUp
		}
		d.t.Fatalf("%s: %v", what, err)
		return err
	}
	changes := []func() error{
		func() error {
			return change("create 3 members", func() {
				cluster = n.CreateObject(&v1beta2.EtcdCluster{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("etcd-%d", round)},
					Spec:       v1beta2.ClusterSpec{Size: 3, Version: "v" + etcd35, Repository: v1beta2.DefaultRepository},
				})
			})
		},
		func() error {
			pod := cluster.Follower()
			return change("replace a force-deleted follower", func() { n.DeletePod(pod) }, pod)
		},
		func() error { return change("grow from 3 to 5", func() { cluster.Resize(5) }) },
		func() error { return change("shrink from 5 to 3", func() { cluster.Resize(3) }) },
		func() error {
			return change("upgrade 3 members by a minor", func() { cluster.SetVersion("v" + etcd36) })
		},
	}
	for _, next := range changes {
		if next() != nil {
			break
		}
	}
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
}
