// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestShippedManifestsAreUnderstood(t *testing.T) {
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Root: root}
	objects, err := env.manifest("example/rbac/cluster-role-binding-template.yaml", map[string]string{"<ROLE_NAME>": "a", "<ROLE_BINDING_NAME>": "b", "<NAMESPACE>": "c"})
	if err != nil {
		t.Fatal(err)
	}
	binding, ok := objects[0].(*rbacv1.ClusterRoleBinding)
	if !ok || len(objects) != 1 || binding.Name != "b" || binding.RoleRef.Name != "a" || binding.Subjects[0].Namespace != "c" {
		t.Errorf("binding: %+v", objects)
	}
	if _, err := env.manifest("example/deployment.yaml", nil); err != nil {
		t.Error(err)
	}
}

func TestSetFlags(t *testing.T) {
	cases := []struct {
		name          string
		command, args []string
		want          []string
	}{
		{"added to the command", []string{"etcd-operator"}, nil, []string{"etcd-operator", "-gc-interval=3s"}},
		{"added to the arguments", []string{"etcd-operator"}, []string{"-cluster-wide"}, []string{"-cluster-wide", "-gc-interval=3s"}},
		{"replaced", []string{"etcd-operator", "--gc-interval=10m", "-cluster-wide"}, nil, []string{"etcd-operator", "-cluster-wide", "-gc-interval=3s"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			deployment := &appsv1.Deployment{}
			deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers, corev1.Container{Command: c.command, Args: c.args})
			setFlags(deployment, []string{"-gc-interval=3s"})
			got := deployment.Spec.Template.Spec.Containers[0]
			list := got.Args
			if len(c.args) == 0 {
				list = got.Command
			}
			if !slices.Equal(list, c.want) {
				t.Errorf("flags are %q, want %q", list, c.want)
			}
		})
	}
}
