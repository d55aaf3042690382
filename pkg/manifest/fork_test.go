// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ofTheFork reads objects that the fork's operator left on a Kubernetes: the clusters mem (in
// emptyDirs), vol (on volumes) and enc (with TLS).
func ofTheFork[T any](t *testing.T, kind string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "fork", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []T }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Fatalf("there are no %s", kind)
	}
	return list.Items
}

// clusterOf returns the fork's EtcdCluster that controls an object.
func clusterOf(t *testing.T, obj metav1.Object) *api.EtcdCluster {
	t.Helper()
	clusters := ofTheFork[api.EtcdCluster](t, "etcdclusters")
	i := slices.IndexFunc(clusters, func(c api.EtcdCluster) bool { return metav1.IsControlledBy(obj, &c) })
	if i < 0 {
		t.Fatalf("%s belongs to no cluster", obj.GetName())
	}
	return &clusters[i]
}

// Clients and ServiceMonitors know the names of ports.
func TestServicesOfTheForkStayAsTheyAre(t *testing.T) {
	for _, live := range ofTheFork[corev1.Service](t, "services") {
		obj := clusterOf(t, &live)
		want := BuildClientService(obj)
		if live.Name == obj.Name {
			want = BuildPeerService(obj)
		}
		if want.Name != live.Name {
			t.Fatalf("the Service is %s, and would be %s", live.Name, want.Name)
		}
		if mended, edited := UpdatedService(&live, want); edited != "" {
			t.Errorf("%s: changes %s, to ports %v and selector %v", live.Name, edited, mended.Spec.Ports, mended.Spec.Selector)
		}
	}
}

// In the fork, spec.service.selector replaces the selector.
func TestTheSelectorOfAServiceOfTheForkStays(t *testing.T) {
	obj := testCluster()
	obj.Spec.Service = &api.ServicePolicy{Selector: map[string]string{"role": "proxy"}}
	for name, c := range map[string]struct {
		live map[string]string
		stay bool
	}{
		"as the fork makes it":          {map[string]string{"role": "proxy"}, true},
		"as this operator makes it":     {map[string]string{"role": "proxy", "app": "etcd", "etcd_cluster": "c"}, true},
		"somebody has removed one of 3": {map[string]string{"role": "proxy", "app": "etcd"}, false},
		"somebody has removed all":      {nil, false},
		"it leads elsewhere":            {map[string]string{"role": "db"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := BuildClientService(obj)
			live.Spec.Selector = c.live
			mended, edited := UpdatedService(live, BuildClientService(obj))
			if stays := edited == ""; stays != c.stay {
				t.Errorf("changes %q, to %v", edited, mended.Spec.Selector)
			}
		})
	}
}
