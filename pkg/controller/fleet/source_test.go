// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestTheInformerTellsThatTheResourceIsMissing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleDynamicClient(scheme)
	var answer error
	client.PrependReactor("*", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return answer != nil, nil, answer
	})
	reported := 0
	source := &Source[*api.EtcdCluster]{
		Dynamic: client, Resource: api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural), Namespace: "ns",
		Missing: func() { reported++ },
	}
	lw := source.listWatch()
	for _, c := range []struct {
		answer   error
		reported int
	}{
		{apierrors.NewInternalError(errors.New("down")), 0},
		{apierrors.NewNotFound(api.Resource("etcdclusters"), ""), 1},
	} {
		answer = c.answer
		if _, err := lw.List(metav1.ListOptions{}); err == nil || reported != c.reported { //nolint:staticcheck // the interface of old
			t.Errorf("%v: reported %d times, want %d", c.answer, reported, c.reported)
		}
	}
}
