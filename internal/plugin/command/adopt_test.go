// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// adoptWorld has the Deployment of example/deployment.yaml with a label.
func adoptWorld(t *testing.T, label string) (*world, *fake.FakeDynamicClient) {
	t.Helper()
	content, err := os.ReadFile("../../../example/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &d.Object); err != nil {
		t.Fatal(err)
	}
	d.SetNamespace("default")
	d.SetLabels(map[string]string{label: "x"})
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdclusters"}: "EtcdClusterList",
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}:                "PodDisruptionBudgetList",
		{Group: "apps", Version: "v1", Resource: "deployments"}:                           "DeploymentList",
	}, d)
	client.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return rehearsed(action), d, nil
	})
	w := newWorld(t)
	w.access.Dynamic = client
	return w, client
}

func TestAdoptAsksBeforeItChangesAnything(t *testing.T) {
	for _, test := range []struct {
		line, label, answer string
		code                int
		out, errOut         string
	}{
		{"adopt --dry-run", "name", "", 0, "scale deployment/etcd-operator to 0", ""},
		{"adopt", "name", "no\n", 1, "Continue? Type yes: ", "the answer is not yes, and the command has changed nothing"},
		{"adopt", "name", "", 1, "Continue? Type yes: ", "in scripts, use --yes"},
		{"adopt --yes", "olm.owner", "", 1, "PROB  the Operator Lifecycle Manager keeps", "accept them by --force"},
		{"adopt --force --dry-run", "olm.owner", "", 0, "apply deployment/etcd-operator, after the old one", ""},
		{"adopt --back", "name", "", 1, "", "has no ConfigMap etcd-operator-adoption"},
	} {
		w, client := adoptWorld(t, test.label)
		w.in.WriteString(test.answer)
		code, out, errOut := w.run(strings.Split(test.line, " ")...)
		if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(errOut, test.errOut) {
			t.Errorf("%s: exit code %d: %s%s", test.line, code, out, errOut)
		}
		for _, action := range client.Actions() {
			if verb := action.GetVerb(); verb != "get" && verb != "list" && !rehearsed(action) {
				t.Errorf("%s: it asked for %v", test.line, action)
			}
		}
	}
}

func rehearsed(action k8stesting.Action) bool {
	switch a := action.(type) {
	case k8stesting.CreateActionImpl:
		return len(a.CreateOptions.DryRun) > 0
	case k8stesting.PatchActionImpl:
		return len(a.PatchOptions.DryRun) > 0
	}
	return false
}
