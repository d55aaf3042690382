// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Somebody may install an older CustomResourceDefinition without the status subresource while
// the operator runs. That does not mean that all EtcdClusters are gone.
func TestAStatusThatTheAPIServerDoesNotKnowIsToldOf(t *testing.T) {
	for name, exists := range map[string]bool{"the object is there": true, "the object is gone": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			if !exists {
				w = newWorld(t, clocktesting.NewFakeClock(noon))
			}
			w.clusters.PrependReactor("update", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewNotFound(api.Resource(api.EtcdClusterResourcePlural), "c")
			})
			told := 0
			w.cfg.StatusMissing = func() { told++ }
			c := w.cluster(testCluster())
			_, err := c.pass(t.Context())
			if err == nil || (told > 0) != exists || strings.Contains(err.Error(), "status subresource") != exists {
				t.Errorf("error %v, reported %d times", err, told)
			}
		})
	}
}
