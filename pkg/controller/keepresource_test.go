// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestTheInformerTellsThatTheResourceIsMissing(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme(t))
	var answer error
	client.PrependReactor("*", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return answer != nil, nil, answer
	})
	told := 0
	lw := listWatch(client, "ns", func() { told++ })
	for _, c := range []struct {
		answer error
		told   int
	}{
		{apierrors.NewInternalError(errors.New("down")), 0},
		{apierrors.NewNotFound(api.Resource("etcdclusters"), ""), 1},
	} {
		answer = c.answer
		if _, err := lw.List(metav1.ListOptions{}); err == nil || told != c.told { //nolint:staticcheck // the interface of old
			t.Errorf("%v: told %d times, want %d", c.answer, told, c.told)
		}
	}
}

func TestACRDThatIsDeletedIsRegisteredAgain(t *testing.T) {
	for _, creates := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var crds apiextensions.Interface
			w := newWorld(t, func(cfg *Config) { crds = cfg.CRDs })
			end := w.run()
			defer end()
			w.ctrl.cfg.CreateCRD = creates
			definitions := crds.ApiextensionsV1().CustomResourceDefinitions()
			if err := definitions.Delete(t.Context(), api.EtcdClusterCRDName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.ctrl.resourceMissing()
			w.ctrl.resourceMissing()
			synctest.Wait()
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
			_, err := definitions.Get(t.Context(), api.EtcdClusterCRDName, metav1.GetOptions{})
			if creates != (err == nil) {
				t.Errorf("with -create-crd=%t: %v", creates, err)
			}
		})
	}
}
