// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"flag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

const testUID types.UID = "11111111-1111-1111-1111-111111111111"

// testCluster is an EtcdCluster as a user makes it.
func testCluster() *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: testUID, Generation: 1, ResourceVersion: "1"},
		Spec:       api.ClusterSpec{Size: 3, Version: "3.6.16"},
	}
}
