// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func quiet() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

// fleetOf manages objects, in a synctest bubble.
func fleetOf(t *testing.T, objects ...*api.EtcdCluster) (*fleettest.Diary, *fleet.Fleet[*api.EtcdCluster]) {
	t.Helper()
	diary := fleettest.NewDiary()
	clusters := fleet.New(fleet.Config[*api.EtcdCluster]{
		Noun: "cluster",
		New: func(obj *api.EtcdCluster) (fleet.Runner[*api.EtcdCluster], error) {
			return diary.New(obj)
		},
		Log: quiet(), Clock: clock.RealClock{},
	})
	ctx, end := context.WithCancel(t.Context())
	for _, obj := range objects {
		clusters.Set(ctx, obj)
	}
	t.Cleanup(func() {
		end()
		clusters.Wait()
	})
	return diary, clusters
}

// establishing makes a fake API server establish CRDs as soon as they are written.
func establishing(client *crdfake.Clientset) {
	client.PrependReactor("get", "customresourcedefinitions", func(a clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := client.Tracker().Get(a.GetResource(), "", a.(clienttesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		c := obj.(*apiextensionsv1.CustomResourceDefinition).DeepCopy()
		c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
		return true, c, nil
	})
}

// metric returns the value of a counter or gauge without labels.
func metric(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		m := f.GetMetric()[0]
		return m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
