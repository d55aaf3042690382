// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const taker = `apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata:
  name: taker
spec:
  size: 3
  version: 3.7.3
  pod:
    extraArgs: [--quota-backend-bytes=8589934592]
`

const importCheck = "import --check -f - --endpoint http://orders-a:2379,http://orders-b.orders:2379 --endpoint http://orders-c.orders.default.svc:2379"

func TestImportChecks(t *testing.T) {
	for name, test := range map[string]struct {
		line, manifest string
		code           int
		out, errOut    string
	}{
		"all is well":               {importCheck, taker, 0, "ok    members: all 3 answer, and all have a vote", ""},
		"another minor":             {importCheck, strings.Replace(taker, "3.7.3", "3.6.16", 1), 1, "FAIL  version: the source runs 3.7, and the EtcdCluster 3.6.16\n      fix: set spec.version to a release of 3.7", ""},
		"another minor, by a copy":  {importCheck, taker + "  importFrom: {method: Copy, endpoints: [\"http://orders-a:2379\"]}\n", 0, "write stop: ", ""},
		"a member is missing":       {strings.Replace(importCheck, "http://orders-a:2379,", "", 1), taker, 1, "FAIL  members: no endpoint leads to member orders-a (1)", ""},
		"JSON":                      {importCheck + " -o json", taker, 0, `"check": "leader",`, ""},
		"no word":                   {"import -f x --endpoint http://orders-a:2379", "", 1, "", "add --check to look for obstacles"},
		"endpoints of the manifest": {"import --check -f -", taker + "  importFrom: {endpoints: [\"http://orders-a:2379\", \"http://orders-b:2379\", \"http://orders-c:2379\"]}\n", 0, "ok    members: all 3 answer, and all have a vote", ""},
		"no endpoint":               {"import --check -f -", taker, 1, "", "has no spec.importFrom: name the client URL"},
		"no file":                   {"import --check --endpoint http://orders-a:2379", "", 1, "", `required flag(s) "file"`},
		"another kind":              {importCheck, "kind: Pod\nmetadata: {name: a}", 1, "", `it has the kind "Pod"`},
		"an unknown field":          {importCheck, taker + "  sise: 3\n", 1, "", "sise"},
		"another namespace":         {importCheck, strings.Replace(taker, "name: taker", "name: taker\n  namespace: prod", 1), 1, "", "add -n prod"},
		"TLS without Secret":        {"import --check -f - --endpoint https://orders-a:2379", taker, 1, "", "with --tls-secret"},
		"no such Secret":            {importCheck + " --credentials-secret none", taker, 1, "", `secrets "none" not found`},
		"an empty Secret":           {importCheck + " --credentials-secret empty", taker, 1, "", "lacks username and password"},
		"no certificate":            {importCheck + " --tls-secret empty", taker, 1, "", "Secret empty lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "default"}})
			for _, name := range names {
				pod, err := w.kube.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				pod.Spec.Subdomain = "orders"
				if _, err := w.kube.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.kube.ClearActions()
			w.in.WriteString(test.manifest)
			code, out, errOut := w.run(strings.Split(test.line, " ")...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(errOut, test.errOut) {
				t.Errorf("exit code %d, want %d, %q and %q:\n%s%s", code, test.code, test.out, test.errOut, out, errOut)
			}
			for _, action := range w.kube.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("it asked for %v", action)
				}
			}
			for name, m := range w.members {
				changes := slices.DeleteFunc(m.Changes(), func(change any) bool { return change == "snapshot" }) // it reads
				if len(changes) > 0 {
					t.Errorf("it changed %s: %v", name, changes)
				}
			}
		})
	}
}

func TestOnlyHostsOfPodsAreReachedThroughTheAPIServer(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-0", Namespace: "old"}, Spec: corev1.PodSpec{Subdomain: "etcd"}}
	for domain, want := range map[string]bool{
		"": true, "etcd": true, "etcd.old": true, "etcd.old.svc.cluster.local": true,
		"example.com": false, "etcd.other.svc": false, "etc": false,
	} {
		if got := isHostOf(pod, domain); got != want {
			t.Errorf("etcd-0.%s is the pod: %t, want %t", domain, got, want)
		}
	}
}
