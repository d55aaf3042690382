// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// belongings are all that the operator would make of a cluster.
func belongings(obj *api.EtcdCluster) (objects []runtime.Object, err error) {
	version := obj.Spec.EffectiveVersion()
	n := manifest.NamesOf(obj)
	first, second := obj.Name+"-aaaaaaaaaa", obj.Name+"-bbbbbbbbbb"
	for _, p := range []manifest.MemberPod{
		{Name: first, Version: version, Seed: true, Token: "token", InitialCluster: etcd.InitialCluster{n.PeerURL(first): first}},
		{Name: second, Version: version, InitialCluster: etcd.InitialCluster{n.PeerURL(first): first, n.PeerURL(second): second}},
	} {
		pod, err := manifest.BuildPod(obj, p, manifest.CertForms{Server: certsecret.CertManager}, operatorImage)
		if err != nil {
			return nil, err
		}
		objects = append(objects, pod)
	}
	objects = append(objects, manifest.BuildPeerService(obj), manifest.BuildClientService(obj), manifest.BuildBudget(obj, 2))
	if obj.Spec.Persistent() {
		objects = append(objects, manifest.BuildVolume(obj, second))
	}
	return objects, nil
}

// survive does with what somebody wrote all that the operator does before it
// asks anybody: nothing of that may end the operator.
func survive(t *testing.T, text []byte) {
	obj := &api.EtcdCluster{}
	if _, err := sigsjson.UnmarshalStrict(text, obj); err != nil {
		return // the informer leaves it out and says so
	}
	obj.Name, obj.Namespace, obj.UID = "c", "ns", "uid"
	before := obj.DeepCopy()
	refused := api.ValidateEtcdCluster(obj)
	api.Warnings(obj)
	if _, err := belongings(obj); err != nil && len(refused) == 0 {
		t.Errorf("no pod is made of a spec that is not refused: %v: %s", err, text)
	}
	was, err := json.Marshal(before)
	if err != nil {
		return // JSON that we read and Kubernetes' types don't write
	}
	if is, err := json.Marshal(obj); err != nil || string(was) != string(is) {
		t.Errorf("the object was changed from %s to %s (%v)", was, is, err)
	}
}

func FuzzSpec(f *testing.F) {
	text, err := os.ReadFile("../apis/etcd/crd/testdata/etcdcluster.yaml")
	if err != nil {
		f.Fatal(err)
	}
	var cases []struct {
		Cluster runtime.RawExtension `json:"cluster"`
	}
	if err := yaml.Unmarshal(text, &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add([]byte(c.Cluster.Raw))
	}
	f.Fuzz(survive)
}

func TestRandomSpecsEndNothing(t *testing.T) {
	specs := newSpecs(t, 1)
	judged := 0
	for range 3000 {
		text, err := json.Marshal(map[string]any{"metadata": metav1.ObjectMeta{Name: "c"}, "spec": specs.next()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sigsjson.UnmarshalStrict(text, &api.EtcdCluster{}); err == nil {
			judged++
		}
		survive(t, text)
	}
	if judged < 1000 {
		t.Errorf("only %d of the specs could be read: that tests little", judged)
	}
}
