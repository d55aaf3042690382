// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package example_test checks the manifests and scripts that users run.
package example_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// placeholders are filled in by create_role.sh, and by sed, as in doc/.
var placeholders = strings.NewReplacer(
	"<ROLE_NAME>", "etcd-operator",
	"<ROLE_BINDING_NAME>", "etcd-operator",
	"<NAMESPACE>", "default",
	"<full-s3-path>", "mybucket/etcd.backup",
	"<aws-secret>", "aws",
	"<etcd-cluster-endpoints>", `"http://example-etcd-cluster-client:2379"`,
	"<revision>", "80911",
	"<time>", "2026-11-21T03:30:00Z",
)

var unfilled = regexp.MustCompile(`<[^ >]+>`)

func TestEveryManifestIsAnObjectOfTodaysAPI(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		if filepath.Dir(path) == "monitoring" {
			return nil // not of Kubernetes itself; test/monitoring checks them
		}
		if strings.HasPrefix(path, "gitops"+string(filepath.Separator)) {
			return nil // not of Kubernetes itself; the test there checks them
		}
		found++
		t.Run(path, func(t *testing.T) {
			for _, object := range readManifest(t, path) {
				if cluster, ok := object.(*v1beta2.EtcdCluster); ok {
					if errs := v1beta2.ValidateEtcdCluster(cluster); len(errs) > 0 {
						t.Error(errs.ToAggregate())
					}
				}
				if backup, ok := object.(*v1beta2.EtcdBackup); ok {
					if errs := v1beta2.ValidateEtcdBackup(backup); len(errs) > 0 {
						t.Error(errs.ToAggregate())
					}
				}
				if restore, ok := object.(*v1beta2.EtcdRestore); ok {
					if errs := v1beta2.ValidateEtcdRestore(restore); len(errs) > 0 {
						t.Error(errs.ToAggregate())
					}
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("no manifest found")
	}
}

func TestTheDeploymentFindsItsPods(t *testing.T) {
	for _, path := range []string{"deployment.yaml", "etcd-backup-operator/deployment.yaml", "etcd-restore-operator/deployment.yaml"} {
		deployment := readOne[*appsv1.Deployment](t, path)
		checkSelector(t, deployment)
	}
}

// An operator is deployed the same with and without a volume.
func TestTheVolumeIsAllThatDiffers(t *testing.T) {
	for _, dir := range []string{"etcd-backup-operator", "etcd-restore-operator"} {
		t.Run(dir, func(t *testing.T) {
			want := readOne[*appsv1.Deployment](t, dir+"/deployment.yaml")
			got := deploymentIn(t, dir+"/volume.yaml")
			pod := &got.Spec.Template.Spec
			if len(pod.Volumes) != 1 || len(pod.Containers[0].VolumeMounts) != 1 || len(pod.Containers[0].Command) != 2 {
				t.Fatalf("it has no volume: %+v", pod)
			}
			got.Spec.Strategy = want.Spec.Strategy
			pod.SecurityContext.FSGroup, pod.Volumes, pod.Affinity = nil, nil, nil
			pod.Containers[0].VolumeMounts, pod.Containers[0].Command = nil, pod.Containers[0].Command[:1]
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("the Deployments differ by more than the volume:\n%+v\n%+v", got, want)
			}
		})
	}
}

// What the backup operator has stored on its volume, the restore operator finds.
func TestBackupsAndRestoresHaveTheSameVolume(t *testing.T) {
	want := deploymentIn(t, "etcd-backup-operator/volume.yaml").Spec.Template.Spec
	got := deploymentIn(t, "etcd-restore-operator/volume.yaml").Spec.Template.Spec
	got.Containers[0].VolumeMounts[0].ReadOnly = false
	if !equality.Semantic.DeepEqual(got.Volumes, want.Volumes) ||
		!equality.Semantic.DeepEqual(got.Containers[0].VolumeMounts, want.Containers[0].VolumeMounts) ||
		got.Containers[0].Command[1] != want.Containers[0].Command[1] {
		t.Errorf("the restore operator has the volume\n%+v %+v %q, and the backup operator\n%+v %+v %q",
			got.Volumes, got.Containers[0].VolumeMounts, got.Containers[0].Command, want.Volumes, want.Containers[0].VolumeMounts, want.Containers[0].Command)
	}
}

func deploymentIn(t *testing.T, path string) *appsv1.Deployment {
	t.Helper()
	for _, object := range readManifest(t, path) {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return deployment
		}
	}
	t.Fatalf("%s holds no Deployment", path)
	return nil
}

func checkSelector(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("selector %s does not match the labels of the pods, %v", selector, deployment.Spec.Template.Labels)
	}
}

// Whoever adds a field adds it to the example, which the end-to-end tests run.
func TestAnExampleHasEveryFieldOfThePodPolicy(t *testing.T) {
	var cluster *v1beta2.EtcdCluster
	for _, object := range readManifest(t, "example-etcd-cluster-with-pod-policy.yaml") {
		if c, ok := object.(*v1beta2.EtcdCluster); ok {
			cluster = c
		}
	}
	if cluster == nil || cluster.Spec.Pod == nil {
		t.Fatal("the example has no pod policy")
	}
	fields := reflect.TypeFor[v1beta2.PodPolicy]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		// Members with volumes can't have tmpfs. spec.priorityClassName is the same field at its
		// usual place.
		absent := name == "Tmpfs" || name == "PriorityClassName" && cluster.Spec.PriorityClassName != ""
		if set := !reflect.ValueOf(*cluster.Spec.Pod).Field(i).IsZero(); set == absent {
			t.Errorf("%s is set: %t", name, set)
		}
	}
}

func TestTheNodePortServiceFindsTheExampleCluster(t *testing.T) {
	cluster := readOne[*v1beta2.EtcdCluster](t, "example-etcd-cluster.yaml")
	service := readOne[*corev1.Service](t, "example-etcd-cluster-nodeport-service.yaml")
	if got := service.Spec.Selector["etcd_cluster"]; got != cluster.Name {
		t.Errorf("the Service selects members of %q, want %q", got, cluster.Name)
	}
}

func TestTheExampleRunsTheDefaultVersion(t *testing.T) {
	cluster := readOne[*v1beta2.EtcdCluster](t, "example-etcd-cluster.yaml")
	if got := cluster.Spec.EffectiveVersion(); got != v1beta2.DefaultVersion {
		t.Errorf("version %s, want %s, which the tests cover best", got, v1beta2.DefaultVersion)
	}
}

func TestTheRoleIsTheClusterRoleWithoutCRDs(t *testing.T) {
	var want []rbacv1.PolicyRule
	for _, rule := range readOne[*rbacv1.ClusterRole](t, "rbac/cluster-role-template.yaml").Rules {
		if rule.APIGroups[0] != "apiextensions.k8s.io" {
			want = append(want, rule)
		}
	}
	if got := readOne[*rbacv1.Role](t, "rbac/role-template.yaml").Rules; !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the Role grants\n%v\nand the ClusterRole, apart from CRDs,\n%v", got, want)
	}
}

// The roles of one operator alone are parts of what create_role.sh grants to all.
func TestRolesOfTheirOwnGrantNothingMore(t *testing.T) {
	granted := map[string]bool{}
	for _, right := range rights(readOne[*rbacv1.Role](t, "rbac/role-template.yaml").Rules) {
		granted[right] = true
	}
	for _, path := range []string{"rbac/backup-operator.yaml", "rbac/restore-operator.yaml"} {
		found := false
		for _, object := range readManifest(t, path) {
			role, ok := object.(*rbacv1.Role)
			if !ok {
				continue
			}
			found = true
			for _, right := range rights(role.Rules) {
				if !granted[right] {
					t.Errorf("%s grants what the role of all operators does not: %s", path, right)
				}
			}
		}
		if !found {
			t.Errorf("%s holds no Role", path)
		}
	}
}

func rights(rules []rbacv1.PolicyRule) (list []string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					list = append(list, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	return list
}

func TestCreateRoleAppliesRoleAndBinding(t *testing.T) {
	for _, c := range []struct {
		name                     string
		args, env                []string
		kinds                    []string
		role, binding, namespace string
	}{
		{
			name:  "without options",
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "default",
		},
		{
			name:  "options as v0.9.4 had them",
			args:  []string{"--role-name=r", "--role-binding-name=b", "--namespace=n"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "r", binding: "b", namespace: "n",
		},
		{
			name:  "values apart from their options",
			args:  []string{"--role-name", "r", "--role-binding-name", "b", "--namespace", "n"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "r", binding: "b", namespace: "n",
		},
		{
			name:  "environment",
			env:   []string{"ROLE_NAME=r", "ROLE_BINDING_NAME=b", "NAMESPACE=n"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "r", binding: "b", namespace: "n",
		},
		{
			name:  "the namespace of kubectl's context, where the Deployment goes",
			env:   []string{"CONTEXT_NAMESPACE=context"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "context",
		},
		{
			name:  "a context without a namespace",
			env:   []string{"CONTEXT_NAMESPACE="},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "default",
		},
		{
			name:  "the environment wins over the context",
			env:   []string{"CONTEXT_NAMESPACE=context", "NAMESPACE=environment"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "environment",
		},
		{
			name:  "an option wins over the context",
			args:  []string{"--namespaced", "--namespace=option"},
			env:   []string{"CONTEXT_NAMESPACE=context"},
			kinds: []string{"Role", "RoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "option",
		},
		{
			name:  "one namespace alone, that of the context",
			args:  []string{"--namespaced"},
			env:   []string{"CONTEXT_NAMESPACE=context"},
			kinds: []string{"Role", "RoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "context",
		},
		{
			name:  "options win over the environment",
			args:  []string{"--namespace=option"},
			env:   []string{"NAMESPACE=environment"},
			kinds: []string{"ClusterRole", "ClusterRoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "option",
		},
		{
			name:  "one namespace alone",
			args:  []string{"--namespaced", "--namespace=n"},
			kinds: []string{"Role", "RoleBinding"},
			role:  "etcd-operator", binding: "etcd-operator", namespace: "n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			output, err := createRole(t, "", c.env, c.args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			objects := decode(t, output)
			if len(objects) != 2 {
				t.Fatalf("applied %d objects, want 2:\n%s", len(objects), output)
			}
			for i, kind := range c.kinds {
				if got := objects[i].GetObjectKind().GroupVersionKind().Kind; got != kind {
					t.Errorf("object %d is a %s, want %s", i, got, kind)
				}
			}
			roleName := objects[0].(metav1.Object).GetName()
			bindingName, ref, subjects := bindingOf(t, objects[1])
			if roleName != c.role || ref.Name != c.role || ref.Kind != c.kinds[0] {
				t.Errorf("role %s, bound %s %s, want %s", roleName, ref.Kind, ref.Name, c.role)
			}
			if bindingName != c.binding {
				t.Errorf("binding %s, want %s", bindingName, c.binding)
			}
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: c.namespace}}
			if !equality.Semantic.DeepEqual(subjects, want) {
				t.Errorf("bound to %v, want %v", subjects, want)
			}
		})
	}
}

func TestCreateRoleRefuses(t *testing.T) {
	for _, c := range []struct {
		name, bound string
		args        []string
		want        string
	}{
		{name: "an unknown option", args: []string{"--rolename=r"}, want: "unknown option --rolename=r"},
		{name: "an option without its value", args: []string{"--namespace"}, want: "--namespace needs a value"},
		{name: "an empty name", args: []string{"--role-name="}, want: "is not a name"},
		{name: "an empty namespace", args: []string{"--namespace="}, want: "--namespace needs a value"},
		{name: "a name that sed would read", args: []string{"--role-name=a/e;s/x"}, want: "is not a name"},
		{
			name: "to take a binding away from another namespace", bound: "elsewhere",
			args: []string{"--namespace=here"}, want: "already gives rights to the operator in namespace elsewhere",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			output, err := createRole(t, c.bound, nil, c.args...)
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Fatalf("ended with %v, want it refused:\n%s", err, output)
			} else if !strings.Contains(string(exit.Stderr), c.want) {
				t.Errorf("said %q, want %q in it", exit.Stderr, c.want)
			}
			if len(output) > 0 {
				t.Errorf("applied something all the same:\n%s", output)
			}
		})
	}
}

// What create_role.sh grants, it grants in a namespace that the user has perhaps not named.
func TestCreateRoleNamesTheNamespace(t *testing.T) {
	for _, args := range [][]string{nil, {"--namespaced"}} {
		command := createRoleCommand(t, "", []string{"CONTEXT_NAMESPACE=context"}, args...)
		var said strings.Builder
		command.Stderr = &said
		if err := command.Run(); err != nil || !strings.Contains(said.String(), "of namespace context") {
			t.Errorf("%v: error %v, said %q", args, err, &said)
		}
	}
}

// createRole runs create_role.sh from a foreign directory with a kubectl that
// prints what it should apply, and says that the binding belongs to bound. The environment names the
// namespace of its context. Without one, it has no context.
func createRole(t *testing.T, bound string, env []string, args ...string) ([]byte, error) {
	t.Helper()
	return createRoleCommand(t, bound, env, args...).Output()
}

func createRoleCommand(t *testing.T, bound string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("rbac/create_role.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubectl := filepath.Join(dir, "fake-kubectl")
	text := "#!/bin/sh\ncase $1 in\nget) printf %s \"$BOUND\" ;;\napply) cat; echo --- ;;\n" +
		"config) printf %s \"${CONTEXT_NAMESPACE?no context}\" ;;\n*) exit 9 ;;\nesac\n"
	if err := os.WriteFile(kubectl, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), script, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "KUBECTL="+kubectl, "BOUND="+bound, "ROLE_NAME=", "ROLE_BINDING_NAME=", "NAMESPACE=")
	command.Env = append(command.Env, env...)
	return command
}

func bindingOf(t *testing.T, object runtime.Object) (string, rbacv1.RoleRef, []rbacv1.Subject) {
	t.Helper()
	switch b := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return b.Name, b.RoleRef, b.Subjects
	case *rbacv1.RoleBinding:
		return b.Name, b.RoleRef, b.Subjects
	default:
		t.Fatalf("%T is no binding", object)
		return "", rbacv1.RoleRef{}, nil
	}
}

func readOne[T runtime.Object](t *testing.T, path string) T {
	t.Helper()
	objects := readManifest(t, path)
	if len(objects) != 1 {
		t.Fatalf("%s holds %d objects, want 1", path, len(objects))
	}
	object, ok := objects[0].(T)
	if !ok {
		t.Fatalf("%s holds a %T", path, objects[0])
	}
	return object
}

func readManifest(t *testing.T, path string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, []byte(placeholders.Replace(string(text))))
	if len(objects) == 0 {
		t.Fatalf("%s holds no object", path)
	}
	return objects
}

func decode(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1beta2.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()

	var objects []runtime.Object
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	for buffer := make([]byte, 1<<20); ; {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		document := withoutComments(buffer[:n])
		if len(document) == 0 {
			continue
		}
		if left := unfilled.Find(document); left != nil {
			t.Errorf("nothing fills in the placeholder %s", left)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

var comment = regexp.MustCompile(`(?m)^\s*#.*\n`)

func withoutComments(document []byte) []byte {
	return bytes.TrimSpace(comment.ReplaceAll(document, nil))
}
