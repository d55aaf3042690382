// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/importsource"
)

// A look with hashes costs the etcd that serves. The operator takes it when nothing else is in the
// way, and seldom.
func TestTheDatabasesOfAnEtcdWithObstaclesAreSeldomRead(t *testing.T) {
	w := newImportWorld(t, 0)
	looks := 0
	w.cfg.Survey = func(_ context.Context, s *importsource.Source) importsource.Facts {
		looks++
		f := w.facts()
		if !s.Worthwhile(f) {
			t.Error("the data of an etcd without obstacles is not worthwhile")
		}
		f.Members = f.Members[:2]
		f.Members[1].Learner = true
		if s.Worthwhile(f) {
			t.Error("the data of an etcd with a learner is worthwhile")
		}
		f = w.facts()
		f.Answers[1].Digest.Keys++
		return f
	}
	w.c = w.cluster(w.etcdCluster())
	for began := w.clock.Now(); w.clock.Since(began) < 4*time.Minute; w.clock.Step(Period) {
		w.watch()
		if s, err := w.c.pass(t.Context()); err != nil && !isNotYet(err) {
			t.Fatalf("%s: %v", s, err)
		}
		if j := &w.c.importer.job; j.done != nil {
			apply := <-j.done
			j.done <- apply
		}
	}
	w.c.importer.end()
	if got := w.etcdCluster().Status.Import.Obstacles; looks != 1 || len(got) != 1 {
		t.Errorf("%d looks in four minutes, obstacles %q", looks, got)
	}
}
