// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runningWith(t *testing.T, spec string) *EtcdCluster {
	t.Helper()
	c := &EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: ClusterStatus{CurrentVersion: "v3.5.35"}}
	if err := json.Unmarshal([]byte(spec), &c.Spec); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each spec is refused today, and ran in v0.9.4 or in its fork.
func TestWhatRanBeforeIsTolerated(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"a reserved variable":                {`{"size":3,"pod":{"etcdEnv":[{"name":"ETCD_LISTEN_METRICS_URLS","value":"http://0.0.0.0:9379"},{"name":"ETCD_AUTO_COMPACTION_RETENTION","value":"1"}]}}`, `{"size":3,"pod":{"etcdEnv":[{"name":"ETCD_AUTO_COMPACTION_RETENTION","value":"1"}],"resources":{}}}`},
		"a variable and a flag for the same": {`{"size":3,"pod":{"etcdEnv":[{"name":"ETCD_PRE_VOTE","value":"true"}],"extraArgs":["--pre-vote=false"]}}`, `{"size":3,"pod":{"extraArgs":["--pre-vote=false"],"resources":{}}}`},
		"tmpfs beside volumes":               {`{"size":3,"pod":{"tmpfs":true,"persistentVolumeClaimSpec":{"accessModes":["ReadWriteOnce"]}}}`, `{"size":3,"pod":{"persistentVolumeClaimSpec":{"accessModes":["ReadWriteOnce"],"resources":{}},"resources":{}}}`},
		"more than seven members":            {`{"size":9}`, `{"size":9}`},
		"a version that is no release":       {`{"size":3,"version":"latest"}`, `{"size":3,"version":"v3.5.35"}`},
		"a shortened version":                {`{"size":3,"version":"3.5"}`, `{"size":3,"version":"v3.5.35"}`},
		"a profile of seccomp":               {`{"size":3,"pod":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"docker/default","a":"b"}}}`, `{"size":3,"pod":{"annotations":{"a":"b"},"resources":{},"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}}`},
		"a profile of AppArmor":              {`{"size":3,"pod":{"annotations":{"container.apparmor.security.beta.kubernetes.io/etcd":"localhost/etcd"}}}`, `{"size":3,"pod":{"resources":{},"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"etcd"}}}}`},
		"a profile that is set twice":        {`{"size":3,"pod":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"},"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}}`, `{"size":3,"pod":{"resources":{},"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}}`},
		"reserved labels and annotations":    {`{"size":3,"pod":{"labels":{"etcd_zone":"a","team":"a"},"annotations":{"etcd.version":"3.5.9"}}}`, `{"size":3,"pod":{"labels":{"team":"a"},"resources":{}}}`},
		"a server's certificate alone":       {`{"size":3,"TLS":{"static":{"member":{"peerSecret":"p","serverSecret":"s"}}}}`, `{"size":3,"TLS":{"static":{"member":{"peerSecret":"p"}}}}`},
		"a limit that is never reached":      {`{"size":3,"pod":{"DNSTimeoutInSecond":-1}}`, `{"size":3,"pod":{"DNSTimeoutInSecond":0,"resources":{}}}`},
		"a domain in capitals":               {`{"size":3,"pod":{"ClusterDomain":".Cluster.Local"}}`, `{"size":3,"pod":{"ClusterDomain":".cluster.local","resources":{}}}`},
		"one Service for all":                {`{"size":3,"service":{"name":"c","annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":"10.0.0.0/8"}}}`, `{"size":3,"service":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			given := runningWith(t, c.spec)
			if len(ValidateEtcdCluster(given)) == 0 {
				t.Fatal("a new cluster may have this spec: the case shows nothing")
			}
			before := given.DeepCopy()
			got, errs := Tolerated(given)
			if len(errs) > 0 {
				t.Errorf("still refused: %v", errs.ToAggregate())
			}
			if want := runningWith(t, c.want).Spec; !equality.Semantic.DeepEqual(got.Spec, want) {
				text, err := json.Marshal(got.Spec)
				t.Errorf("the operator follows\n%s (%v), want\n%s", text, err, c.want)
			}
			if !reflect.DeepEqual(given, before) {
				t.Errorf("it changed the given object to %+v", given.Spec)
			}
		})
	}
}

// Nothing could run with these, or nobody knows with what it runs.
func TestWhatCantBeFollowedStaysRefused(t *testing.T) {
	for name, c := range map[string]struct{ spec, says string }{
		"no size":                      {`{}`, "spec.size"},
		"an operator's secret alone":   {`{"size":3,"TLS":{"static":{"operatorSecret":"o"}}}`, "belong together"},
		"an impossible domain":         {`{"size":3,"pod":{"ClusterDomain":"Cluster_Local"}}`, "ClusterDomain"},
		"a repository with a digest":   {`{"size":3,"repository":"quay.io/coreos/etcd@sha256:0"}`, "repository"},
		"nodes with impossible labels": {`{"size":3,"pod":{"nodeSelector":{"a b":"c"}}}`, "nodeSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := Tolerated(runningWith(t, c.spec))
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.says) {
				t.Errorf("errors %v, want one that says %q", errs, c.says)
			}
		})
	}
	unknown := runningWith(t, `{"size":3,"version":"latest"}`)
	unknown.Status.CurrentVersion = ""
	if _, errs := Tolerated(unknown); len(errs) == 0 {
		t.Error("without a known version, the operator would choose its default")
	}
}
