// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// usedRights reads the table that the end-to-end tests compare with the API server's audit log.
func usedRights(t *testing.T) map[string][]string {
	t.Helper()
	used, operator := map[string][]string{}, ""
	for line := range strings.Lines(read(t, "test/e2e/testdata/rights.txt")) {
		line = strings.TrimSpace(line)
		resource, verbs, found := strings.Cut(line, ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !found:
			operator = line
		default:
			for _, verb := range strings.Fields(verbs) {
				used[operator] = append(used[operator], strings.Trim(verb, "()")+" "+resource)
			}
		}
	}
	for _, rights := range used {
		slices.Sort(rights)
	}
	return used
}

// Each operator has the rights that it uses, and no others, in one namespace and in all.
func TestEachOperatorHasTheRightsThatItUses(t *testing.T) {
	used := usedRights(t)
	for _, c := range []struct{ file, kind, suffix string }{
		{"deploy/install.yaml", "Role ", ""},
		{"deploy/install-cluster-wide.yaml", "ClusterRole ", "-cluster-wide"},
	} {
		found := parse(t, read(t, c.file), "etcd-operator")
		for _, operator := range operators {
			role := found[c.kind+operator+c.suffix]
			if role == nil {
				t.Fatalf("%s: no %s%s%s", c.file, c.kind, operator, c.suffix)
			}
			if got := slices.Compact(rightsOf(t, role)); !slices.Equal(got, used[operator]) {
				t.Errorf("%s grants %s\n%s\nand it uses\n%s", c.file, operator, strings.Join(got, "\n"), strings.Join(used[operator], "\n"))
			}
		}
	}
}

// An operator has a service account of its own, and one role for it.
func TestEachOperatorHasItsOwnServiceAccount(t *testing.T) {
	found := parse(t, read(t, "deploy/install.yaml"), "")
	for _, operator := range operators {
		if deployment := toText(t, found["Deployment "+operator]); !strings.Contains(deployment, "serviceAccountName: "+operator+"\n") {
			t.Errorf("%s runs as another service account:\n%s", operator, deployment)
		}
		want := "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: " + operator + "\nsubjects:\n- kind: ServiceAccount\n  name: " + operator + "\n"
		if binding := toText(t, found["RoleBinding "+operator]); !strings.HasSuffix(binding, want) {
			t.Errorf("the RoleBinding of %s:\n%swant at its end\n%s", operator, binding, want)
		}
	}
}

// For one namespace, nothing is granted outside of it.
func TestOneNamespaceNeedsNoClusterRole(t *testing.T) {
	for name, text := range map[string]string{"install.yaml": read(t, "deploy/install.yaml"), "the chart": renderIn(t, release, "crds: install")} {
		for key := range parse(t, text, release) {
			if strings.HasPrefix(key, "ClusterRole") {
				t.Errorf("%s has %s", name, key)
			}
		}
	}
}

// The right to register CRDs ends at those of the operators.
func TestTheOperatorsRegisterOnlyTheirCRDs(t *testing.T) {
	found := parse(t, renderIn(t, release, "crds: register"), release)
	for key, object := range found {
		if !strings.HasPrefix(key, "ClusterRole ") {
			continue
		}
		for _, rule := range object["rules"].([]any) {
			r := rule.(map[string]any)
			verbs := r["verbs"].([]any)
			names, _ := r["resourceNames"].([]any)
			if creates := len(verbs) == 1 && verbs[0] == "create"; !creates && len(names) != len(operators) {
				t.Errorf("%s grants %v on %v, named %v", key, verbs, r["resources"], names)
			}
		}
		if got, want := rightsOf(t, object), []string{
			"create apiextensions.k8s.io/customresourcedefinitions",
			"get apiextensions.k8s.io/customresourcedefinitions",
			"update apiextensions.k8s.io/customresourcedefinitions",
		}; !slices.Equal(got, want) {
			t.Errorf("%s grants %v", key, got)
		}
	}
	if found["ClusterRole etcd-operator-register-crds-databases"] == nil {
		t.Error("no role grants the right to register CRDs")
	}
}

// What create_role.sh grants to all operators is what the three use together, and the right to
// register CRDs.
func TestTheSharedRoleIsTheSumOfTheThree(t *testing.T) {
	sum := map[string]bool{}
	for _, rights := range usedRights(t) {
		for _, right := range rights {
			sum[right] = true
		}
	}
	shared := map[string]bool{}
	for _, object := range parse(t, read(t, "example/rbac/role-template.yaml"), "<NAMESPACE>") {
		for _, right := range rightsOf(t, object) {
			shared[right] = true
			if !sum[right] {
				t.Errorf("example/rbac/role-template.yaml grants what no operator uses: %s", right)
			}
		}
	}
	for right := range sum {
		if !shared[right] {
			t.Errorf("example/rbac/role-template.yaml does not grant %s", right)
		}
	}
}
