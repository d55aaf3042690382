// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
)

func TestFindings(t *testing.T) {
	namespaced := operator("default", "etcd-operator", "etcd-operator")
	withBackups := append(slices.Clone(namespaced), operator("default", "etcd-backup-operator", "etcd-backup-operator")...)
	wide := operator("default", "etcd-operator", "etcd-operator, --cluster-wide=true")
	for name, test := range map[string]struct {
		documents []string
		change    func(c *unstructured.Unstructured)
		level     adopt.Level
		want      string
	}{
		"OLM": {
			documents: []string{strings.Replace(namespaced[0], `fork: "yes"`, "olm.owner: etcdoperator.v0.9.4", 1)},
			level:     adopt.Problem, want: "the Operator Lifecycle Manager keeps the Deployment etcd-operator",
		},
		"Helm": {
			documents: []string{strings.Replace(namespaced[0], `fork: "yes"`, "app.kubernetes.io/managed-by: Helm, app.kubernetes.io/instance: etcd", 1)},
			level:     adopt.Note, want: "Helm manages the Deployment etcd-operator (release etcd)",
		},
		"Helm, as the chart of v0.9.4 labels": {
			documents: []string{strings.Replace(namespaced[0], `fork: "yes"`, "heritage: Tiller, release: etcd", 1)},
			level:     adopt.Note, want: "Helm manages the Deployment etcd-operator (release etcd)",
		},
		"the identity in a cloud": {
			documents: append([]string{cloudAccount("default")}, withBackups...),
			level:     adopt.Problem, want: "the service account default has the annotation iam.gke.io/gcp-service-account, and etcd-backup-operator has not",
		},
		"another service account": {
			documents: withBackups,
			level:     adopt.Note, want: "etcd-backup-operator uses the service account etcd-backup-operator after the move, and not default",
		},
		"resources": {
			documents: []string{strings.Replace(namespaced[0], "name: operator,", "name: operator, resources: {limits: {memory: 2Gi}},", 1)},
			level:     adopt.Note, want: "the resources of the container operator of etcd-operator are not carried over",
		},
		"two of one program": {
			documents: append(operator("default", "other", "etcd-operator"), namespaced...),
			level:     adopt.Obstacle, want: "run etcd-operator",
		},
		"two scopes": {
			documents: append(operator("default", "backups", "etcd-backup-operator"), wide...),
			level:     adopt.Obstacle, want: "backups has not",
		},
		"a second one for all namespaces": {
			documents: append(operator("other", "second", `sh, -c, "exec etcd-operator -cluster-wide"`), wide...),
			level:     adopt.Problem, want: "two would lead at once",
		},
		"older operators elsewhere": {
			documents: append(operator("other", "second", "etcd-operator"), namespaced...),
			level:     adopt.Problem, want: "the older operator other/second shares the CRDs",
		},
		"an older restore operator elsewhere": {
			documents: append(operator("other", "restores", "etcd-restore-operator"), namespaced...),
			level:     adopt.Problem, want: "the older operator other/restores shares the CRDs: with the new ones it cannot record that an EtcdRestore is done, and repeats it",
		},
		"an older backup operator elsewhere": {
			documents: append(operator("other", "backups", "etcd-backup-operator, -cluster-wide"), wide...),
			level:     adopt.Problem, want: "the older operator other/backups shares the CRDs: with the new ones it cannot record that an EtcdBackup is done, and repeats it",
		},
		"one of this release for the same backups elsewhere": {
			documents: append(ofThisRelease("other", "etcd-backup-operator", "etcd-backup-operator, -cluster-wide, -any-scope"), withBackups...),
			level:     adopt.Problem, want: "other/etcd-backup-operator of this release also runs etcd-backup-operator for the same objects",
		},
		"one of this release for all namespaces": {
			documents: append(ofThisRelease("other", "etcd-operator", "etcd-operator, -cluster-wide"), wide...),
			level:     adopt.Problem, want: "other/etcd-operator of this release also runs etcd-operator for the same objects",
		},
		"the rights of operators elsewhere": {
			documents: append([]string{`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: etcd-operator-cluster-wide}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: etcd-operator-cluster-wide}
subjects: [{kind: ServiceAccount, name: etcd-operator, namespace: other}]`}, wide...),
			level: adopt.Obstacle, want: "gives rights to the service account other/etcd-operator, which would lose them",
		},
		"a backup whose operator elsewhere has no pods": {
			documents: append([]string{without(operator("other", "backups", "etcd-backup-operator")[0]), `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: nightly, namespace: other}`}, withBackups...),
			level: adopt.Problem, want: "no operator would handle these etcdbackups: other/nightly",
		},
		"flags": {
			documents: operator("default", "etcd-operator", "etcd-operator, -chaos-level=1"),
			level:     adopt.Note, want: "the flag -chaos-level=1 of etcd-operator is not carried over",
		},
		"a member is missing": {
			documents: namespaced,
			change:    func(c *unstructured.Unstructured) { set(c, []any{"mem-a"}, "status", "members", "ready") },
			level:     adopt.Problem, want: "default/mem has 1 of 3 members ready",
		},
		"no phase": {
			documents: namespaced,
			change:    func(c *unstructured.Unstructured) { set(c, "Failed", "status", "phase") },
			level:     adopt.Problem, want: `has the phase "Failed"`,
		},
		"an upgrade": {
			documents: namespaced,
			change:    func(c *unstructured.Unstructured) { set(c, "v3.5.36", "status", "targetVersion") },
			level:     adopt.Problem, want: "is being upgraded to v3.5.36",
		},
		"a part of the spec that the operator tolerates": {
			documents: namespaced,
			change: func(c *unstructured.Unstructured) {
				set(c, []any{map[string]any{"name": "ETCD_LISTEN_METRICS_URLS", "value": "http://0.0.0.0:1"}}, "spec", "pod", "etcdEnv")
			},
			level: adopt.Note, want: "follows the spec of default/mem without the refused parts",
		},
		"a spec that the operator cannot follow": {
			documents: namespaced,
			change: func(c *unstructured.Unstructured) {
				set(c, int64(0), "spec", "size")
				set(c, []any{}, "status", "members", "ready")
			},
			level: adopt.Problem, want: "would leave the EtcdCluster default/mem alone",
		},
		"a budget of the user": {
			documents: append([]string{`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: mine, namespace: default}
spec: {maxUnavailable: 1, selector: {matchLabels: {etcd_cluster: mem}}}`}, namespaced...),
			level: adopt.Problem, want: "the PodDisruptionBudget default/mine selects pods of mem",
		},
		"backups elsewhere": {
			documents: append([]string{`
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: nightly, namespace: other}`}, withBackups...),
			level: adopt.Problem, want: "no operator would handle these etcdbackups: other/nightly",
		},
		"root on a volume": {
			documents: append([]string{
				"{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: restricted}}}",
				"{apiVersion: v1, kind: Pod, metadata: {name: mem-a, namespace: default, labels: {etcd_cluster: mem}}}",
			}, namespaced...),
			change: func(c *unstructured.Unstructured) {
				set(c, map[string]any{"persistentVolumeClaimSpec": map[string]any{}}, "spec", "pod")
			},
			level: adopt.Problem, want: "members of default/mem may own their data as root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.documents...)
			if test.change != nil {
				c := w.get("etcdclusters", "mem")
				test.change(c)
				if err := w.client.Tracker().Update(gvr("etcdclusters"), c, "default"); err != nil {
					t.Fatal(err)
				}
			}
			p := w.plan(w.move())
			if !slices.ContainsFunc(p.Findings, func(f adopt.Finding) bool {
				return f.Level == test.level && strings.Contains(f.Message, test.want)
			}) || w.writes > 0 {
				t.Errorf("%d writes, findings %+v", w.writes, p.Findings)
			}
		})
	}
}

// cloudAccount is a service account with rights in a cloud.
func cloudAccount(name string) string {
	return `{apiVersion: v1, kind: ServiceAccount, metadata: {name: ` + name + `, namespace: default, annotations: {iam.gke.io/gcp-service-account: backups@p.iam.gserviceaccount.com}}}`
}

// The move leaves an existing service account as it is.
func TestAnAccountWithTheSameIdentityIsNoProblem(t *testing.T) {
	w := newWorld(t, append([]string{cloudAccount("default"), cloudAccount("etcd-backup-operator")}, operator("default", "etcd-backup-operator", "etcd-backup-operator")...)...)
	if p := w.plan(w.move()); p.Has(adopt.Problem) {
		t.Errorf("findings %+v", p.Findings)
	}
}

// The new Deployment has the variables of the manifests too, and no others.
func TestOnlyVariablesOfTheUserAreLost(t *testing.T) {
	documents := operator("default", "etcd-operator", "etcd-operator")
	documents[0] = strings.Replace(documents[0], "name: operator,", `name: operator, env: [{name: HTTPS_PROXY, value: "http://proxy"},
        {name: GOMEMLIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}, {name: MY_POD_NAME, value: x}],`, 1)
	w := newWorld(t, documents...)
	var lost []string
	for _, f := range w.plan(w.move()).Findings {
		if strings.HasPrefix(f.Message, "the variable") {
			lost = append(lost, f.Message)
		}
	}
	if want := []string{"the variable HTTPS_PROXY of etcd-operator is not carried over"}; !slices.Equal(lost, want) {
		t.Errorf("lost are %q, want %q", lost, want)
	}
}

// ofThisRelease is a Deployment of this release, and its pod.
func ofThisRelease(namespace, name, command string) []string {
	documents := operator(namespace, name, command)
	documents[0] = strings.Replace(documents[0], `fork: "yes"`, "app.kubernetes.io/part-of: etcd-operator", 1)
	return documents
}

// without is a Deployment without pods.
func without(deployment string) string {
	return strings.Replace(deployment, "replicas: 1", "replicas: 0", 1)
}

// An operator elsewhere is no problem if it handles other objects, or none.
func TestOperatorsElsewhereThatDoNotMatter(t *testing.T) {
	for name, elsewhere := range map[string][]string{
		"without pods":                   {without(operator("other", "second", "etcd-operator, -cluster-wide")[0])},
		"of another program":             ofThisRelease("other", "backups", "etcd-backup-operator, -cluster-wide"),
		"of this release, one namespace": ofThisRelease("other", "etcd-operator", "etcd-operator"),
		"of this release, any scope":     ofThisRelease("other", "backups", "etcd-backup-operator, -cluster-wide, -any-scope"),
	} {
		w := newWorld(t, append(elsewhere, operator("default", "etcd-operator", "etcd-operator, -cluster-wide")...)...)
		if p := w.plan(w.move()); p.Has(adopt.Problem) || p.Has(adopt.Obstacle) {
			t.Errorf("%s: findings %+v", name, p.Findings)
		}
	}
}

// The operator of this release elsewhere has a Lease of its own.
func TestAnyScopeBesideThisRelease(t *testing.T) {
	const restores = "etcd-restore-operator"
	w := newWorld(t, append(ofThisRelease("other", restores, restores), operator("default", restores, restores)...)...)
	m := w.move()
	m.AnyScope = true
	if p := w.plan(m); !p.Has(adopt.Problem) || !strings.Contains(p.Findings[0].Message, "other/etcd-restore-operator of this release") {
		t.Errorf("findings %+v", p.Findings)
	}
}

// No operator of any release manages an object whose annotation has another value.
func TestAMoveDoesNotWaitForAClusterThatNobodyManages(t *testing.T) {
	w := newWorld(t, append([]string{`
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: nightly, namespace: default, annotations: {etcd.database.coreos.com/scope: other}}`},
		append(operator("default", "etcd-operator", "etcd-operator"), operator("default", "etcd-backup-operator", "etcd-backup-operator")...)...)...)
	c := w.get("etcdclusters", "mem")
	c.SetAnnotations(map[string]string{"etcd.database.coreos.com/scope": "other"})
	set(c, "Failed", "status", "phase")
	if err := w.client.Tracker().Update(gvr("etcdclusters"), c, "default"); err != nil {
		t.Fatal(err)
	}
	p := w.plan(w.move())
	for _, f := range p.Findings {
		if f.Level != adopt.Note && strings.Contains(f.Message, "EtcdCluster") {
			t.Errorf("finding %+v", f)
		}
	}
	if !slices.ContainsFunc(p.Findings, func(f adopt.Finding) bool {
		return f.Level == adopt.Problem && strings.Contains(f.Message, "no operator would handle these etcdbackups: default/nightly")
	}) {
		t.Errorf("findings %+v", p.Findings)
	}
	if !slices.ContainsFunc(p.Findings, func(f adopt.Finding) bool { return strings.Contains(f.Message, `default/mem, now or later`) }) {
		t.Errorf("findings %+v", p.Findings)
	}
	if err := w.move().Run(t.Context(), p); err != nil {
		t.Error(err)
	}
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

func TestARefusedWriteIsAnObstacle(t *testing.T) {
	for _, resource := range []string{"configmaps", "deployments", "customresourcedefinitions", "roles", "rolebindings"} {
		w := forkWorld(t)
		w.refuse = resource
		if p := w.plan(w.move()); !p.Has(adopt.Obstacle) {
			t.Errorf("%s: %+v", resource, p.Findings)
		}
	}
}

// An operator that runs creates or changes a CustomResourceDefinition between the look and the write.
func TestAnOvertakenWriteIsRepeated(t *testing.T) {
	const crd = "customresourcedefinitions"
	for name, hinder := range map[string]func(*world){
		"it is created": func(w *world) {
			const name = "etcdclusters.etcd.database.coreos.com"
			looks := 0
			w.client.PrependReactor("get", crd, func(a k8stesting.Action) (bool, runtime.Object, error) {
				if a.(k8stesting.GetAction).GetName() != name {
					return false, nil, nil
				}
				looks++ // the first one reads the old definition
				return looks == 2, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), name)
			})
			w.client.PrependReactor("create", crd, func(a k8stesting.Action) (bool, runtime.Object, error) {
				made := a.(k8stesting.CreateAction).GetObject().(*unstructured.Unstructured).GetName()
				return made == name, nil, apierrors.NewAlreadyExists(a.GetResource().GroupResource(), name)
			})
		},
		"it is changed": func(w *world) {
			changed := false
			w.client.PrependReactor("update", crd, func(a k8stesting.Action) (bool, runtime.Object, error) {
				if changed {
					return false, nil, nil
				}
				changed = true
				return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), "etcdclusters", errors.New("it was changed"))
			})
		},
	} {
		w := forkWorld(t)
		hinder(w)
		if p := w.plan(w.move()); p.Has(adopt.Obstacle) {
			t.Errorf("%s: %+v", name, p.Findings)
		}
	}
}

func TestANamespaceWithoutAnOldOperator(t *testing.T) {
	w := newWorld(t, operator("other", "etcd-operator", "etcd-operator")...)
	if _, err := w.move().Plan(t.Context()); err == nil || !strings.Contains(err.Error(), "-n names its namespace") {
		t.Errorf("the error is %v", err)
	}
	if _, err := w.move().PlanBack(t.Context()); err == nil || !strings.Contains(err.Error(), adopt.RecordName) {
		t.Errorf("the error is %v", err)
	}
}

// The fork's backup operator handles all objects, so backups elsewhere need no other operator.
func TestAnyScopeSolvesBackupsElsewhere(t *testing.T) {
	w := newWorld(t, append([]string{`
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: nightly, namespace: other}`}, operator("default", "etcd-backup-operator", "etcd-backup-operator")...)...)
	m := w.move()
	m.AnyScope = true
	if p := w.plan(m); p.Has(adopt.Problem) {
		t.Errorf("findings %+v", p.Findings)
	}
}

// v0.9.4 created CRDs without a schema. Today's API server keeps them, and refuses to create such a CRD.
func TestTheWayBackToACRDWithoutASchema(t *testing.T) {
	w := forkWorld(t)
	crd := w.get("customresourcedefinitions", "etcdclusters.etcd.database.coreos.com")
	set(crd, true, "spec", "preserveUnknownFields")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	delete(versions[0].(map[string]any), "schema")
	set(crd, versions, "spec", "versions")
	if err := w.client.Tracker().Update(gvr("customresourcedefinitions"), crd, ""); err != nil {
		t.Fatal(err)
	}
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	back, err := m.PlanBack(t.Context())
	if err != nil || m.RunBack(t.Context(), back) != nil {
		t.Fatal(err)
	}
	crd = w.get("customresourcedefinitions", "etcdclusters.etcd.database.coreos.com")
	versions, _, _ = unstructured.NestedSlice(crd.Object, "spec", "versions")
	open, _, _ := unstructured.NestedBool(versions[0].(map[string]any), "schema", "openAPIV3Schema", "x-kubernetes-preserve-unknown-fields")
	if _, loose, _ := unstructured.NestedBool(crd.Object, "spec", "preserveUnknownFields"); !open || loose || versions[0].(map[string]any)["subresources"] != nil {
		t.Errorf("the CRD is %v", crd.Object["spec"])
	}
}
