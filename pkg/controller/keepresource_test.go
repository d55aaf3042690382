// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestACRDThatIsDeletedIsRegisteredAgain(t *testing.T) {
	for _, creates := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var crds apiextensions.Interface
			w := newWorld(t, func(cfg *Config) { crds = cfg.CRDs })
			end := w.run()
			defer end()
			w.ctrl.definition.Create = creates
			definitions := crds.ApiextensionsV1().CustomResourceDefinitions()
			if err := definitions.Delete(t.Context(), api.EtcdClusterCRDName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.ctrl.definition.Missing()
			w.ctrl.definition.Missing()
			synctest.Wait()
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
			_, err := definitions.Get(t.Context(), api.EtcdClusterCRDName, metav1.GetOptions{})
			if creates != (err == nil) {
				t.Errorf("with -create-crd=%t: %v", creates, err)
			}
			if err := w.ctrl.Ready(); creates != (err == nil) {
				t.Errorf("with -create-crd=%t it is ready: %v", creates, err)
			}
		})
	}
}
