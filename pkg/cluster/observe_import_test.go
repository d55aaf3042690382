// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
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

// Without its certificate, the operator would hold the members for silent, and name a Secret that the
// spec names already.
func TestAnImportWithoutItsSecretAsksNobody(t *testing.T) {
	w := newImportWorld(t, 0)
	ca := etcdtest.NewCA(t, "ca")
	w.put(certificateSecret(operatorUse, certsecret.Static, "import", ca, etcdtest.Leaf{Name: "operator"}, ca))
	fails := 1
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails--
		return fails >= 0, nil, apierrors.NewServerTimeout(corev1.Resource("secrets"), "get", 1)
	})
	o := &plan.Observation{Now: w.clock.Now(), Spec: api.ClusterSpec{ImportFrom: &api.ImportSource{ClientTLSSecret: "import"}}}
	if err := w.c.readImportSecret(t.Context(), o); err == nil {
		t.Error("the Secret is unread, and there is no error")
	}
	o.Now = o.Now.Add(time.Second)
	if err := w.c.readImportSecret(t.Context(), o); err != nil || w.c.importer.secretID == nil {
		t.Errorf("a second later, the certificate is %v: %v", w.c.importer.secretID, err)
	}
	fails = 1
	o.Now = o.Now.Add(certPeriod)
	if err := w.c.readImportSecret(t.Context(), o); err == nil || w.c.importer.secretID == nil {
		t.Errorf("the certificate in use is %v after a failure: %v", w.c.importer.secretID, err)
	}
}
