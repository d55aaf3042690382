// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// shipped are the rules of the Role in a manifest, one for each right.
func shipped(t *testing.T, manifest string) (rules []authorizationv1.ResourceRule) {
	t.Helper()
	text, err := os.ReadFile("../../example/rbac/" + manifest)
	if err != nil {
		t.Fatal(err)
	}
	objects := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var role rbacv1.ClusterRole // a Role has the same form
		if err := objects.Decode(&role); err != nil {
			break
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						rules = append(rules, authorizationv1.ResourceRule{
							Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames,
						})
					}
				}
			}
		}
	}
	if len(rules) < 20 {
		t.Fatalf("%s grants %v", manifest, rules)
	}
	return rules
}

// everyNeed is what restores of all kinds need.
func everyNeed() (all []right) {
	for _, policy := range []api.OldVolumes{"", api.OldVolumesKeep, api.OldVolumesDeleteFirst} {
		r := testRestore()
		r.Spec.OldVolumes = policy
		all = append(all, needed(r, true)...)
	}
	return all
}

func TestTheShippedRolesGrantWhatARestoreNeeds(t *testing.T) {
	for _, manifest := range []string{"restore-operator.yaml", "role-template.yaml", "cluster-role-template.yaml"} {
		if missing := ungranted(everyNeed(), shipped(t, manifest)); len(missing) > 0 {
			t.Errorf("%s does not grant %v", manifest, missing)
		}
	}
}

// Each right of the Role that is the restore operator's own is one that a restore needs
// beforehand, or one that it does without.
func TestNoRightIsForgotten(t *testing.T) {
	without := []string{
		// The informer has shown the EtcdRestore.
		"list etcdrestores", "watch etcdrestores",
		// Asked for by an admission plugin, where it runs, which refuses the token before
		// the old cluster is deleted.
		"update etcdrestores/finalizers",
		// What is left when the cluster is back is reported, and left.
		"delete secrets",
		// The operator's own Service, wherever the cluster is.
		"get services", "create services", "update services", "delete services", "get pods",
		"get endpointslices", "list endpointslices", "create endpointslices", "update endpointslices", "delete endpointslices", "delete endpoints",
		"create endpointslices/restricted", // on OpenShift
		// Status and log report the same.
		"create events", "patch events",
		// It leads.
		"get leases", "create leases", "update leases",
		"get persistentvolumeclaims",
	}
	rules := shipped(t, "restore-operator.yaml")
	for i, rule := range rules {
		name := rule.Verbs[0] + " " + rule.Resources[0]
		missing := ungranted(everyNeed(), slices.Delete(slices.Clone(rules), i, i+1))
		if reported := len(missing) > 0 && missing[0].String() == name; reported == slices.Contains(without, name) {
			t.Errorf("without the right to %s, %v are missing", name, missing)
		}
	}
}

func TestRulesAreReadAsTheAPIServerDoes(t *testing.T) {
	status := right{verb: "update", group: api.GroupName, resource: "etcdrestores", subresource: "status", name: "c"}
	pods := right{verb: "delete", resource: "pods", several: true}
	create := right{verb: "create", resource: "secrets"}
	rule := func(verb, group, resource string, names ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: []string{"x", verb}, APIGroups: []string{"y", group}, Resources: []string{"z", resource}, ResourceNames: names}
	}
	for name, tc := range map[string]struct {
		right   right
		rule    authorizationv1.ResourceRule
		granted bool
	}{
		"as it stands":                   {pods, rule("delete", "", "pods"), true},
		"another verb":                   {pods, rule("get", "", "pods"), false},
		"another group":                  {pods, rule("delete", "apps", "pods"), false},
		"another resource":               {pods, rule("delete", "", "services"), false},
		"all verbs":                      {pods, rule("*", "", "pods"), true},
		"all groups":                     {pods, rule("delete", "*", "pods"), true},
		"all resources":                  {pods, rule("delete", "", "*"), true},
		"a subresource":                  {status, rule("update", api.GroupName, "etcdrestores/status"), true},
		"the resource is not its status": {status, rule("update", api.GroupName, "etcdrestores"), false},
		"nor is the status the resource": {right{verb: "update", group: api.GroupName, resource: "etcdrestores"}, rule("update", api.GroupName, "etcdrestores/status"), false},
		"the subresource of all":         {status, rule("update", api.GroupName, "*/status"), true},
		"all subresources":               {status, rule("update", api.GroupName, "*"), true},
		"its name":                       {status, rule("update", api.GroupName, "etcdrestores/status", "b", "c"), true},
		"another name":                   {status, rule("update", api.GroupName, "etcdrestores/status", "b"), false},
		"what is made has none":          {create, rule("create", "", "secrets", "c-restore-token"), false},
		"nobody knows which":             {pods, rule("delete", "", "pods", "c-1"), true},
		"nothing":                        {pods, authorizationv1.ResourceRule{}, false},
	} {
		if got := len(ungranted([]right{tc.right}, []authorizationv1.ResourceRule{rule("none", "", ""), tc.rule})) == 0; got != tc.granted {
			t.Errorf("%s: granted %v, want %v", name, got, tc.granted)
		}
	}
}

func TestVolumesAskForRightsWhereThereAreSome(t *testing.T) {
	for policy, want := range map[api.OldVolumes]string{"": "patch", api.OldVolumesKeep: "patch", api.OldVolumesDeleteFirst: "delete"} {
		r := testRestore()
		r.Spec.OldVolumes = policy
		for persistent, want := range map[bool]string{true: "list " + want, false: "list"} {
			var verbs []string
			for _, n := range needed(r, persistent) {
				if n.resource == "persistentvolumeclaims" {
					verbs = append(verbs, n.verb)
				}
			}
			if got := strings.Join(verbs, " "); got != want {
				t.Errorf("%q, persistent %v: %s, want %s", policy, persistent, got, want)
			}
		}
	}
}

// A right that is missing is reported before anything is touched; when it is granted, the
// restore is made.
func TestARightThatIsMissingIsFoundOutFirst(t *testing.T) {
	for _, missing := range []string{"patch services", "delete pods", "create etcdclusters", "patch etcdclusters", "delete etcdclusters", "create secrets", "list persistentvolumeclaims", "patch etcdrestores"} {
		t.Run(missing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(2)
				w.lacking = map[string]bool{missing: true}
				w.add("etcdrestores", testRestore())
				stop := w.run()
				defer stop()
				w.await("the reason", time.Minute, func() bool {
					st := w.restore().Status
					return st.Phase == api.RestorePhaseRetrying && strings.Contains(st.Reason, missing+";") && strings.Contains(st.Reason, notice.ApplyRoles)
				})
				w.live(10 * time.Minute)
				if c, r := w.cluster(), w.restore(); c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers)+len(r.Finalizers) > 0 || committed(&r.Status) || len(w.all("pods")) != 2 {
					t.Errorf("something was touched: %+v, %+v", c.ObjectMeta, r)
				}
				w.change(func() { w.lacking = nil })
				w.await("success", 7*time.Minute, in(api.RestorePhaseSucceeded, w))
			})
		})
	}
}

// Without its Service, the operator has nothing to bring the cluster back by. It may
// lack the right to create the Service.
func TestNothingIsTouchedWhereTheFirstMemberWouldNotFindTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(2)
		var problem error = apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "etcd-restore-operator", nil)
		w.cfg.Reached = func() error {
			w.offersMu.Lock()
			defer w.offersMu.Unlock()
			return problem
		}
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the reason", time.Minute, func() bool {
			st := w.restore().Status
			return st.Phase == api.RestorePhaseRetrying && strings.Contains(st.Reason, "would not find the restore operator") && strings.Contains(st.Reason, "endpointslices")
		})
		w.live(10 * time.Minute)
		if c := w.cluster(); c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers) > 0 {
			t.Errorf("the cluster was touched: %+v", c.ObjectMeta)
		}
		w.offersMu.Lock()
		problem = nil
		w.offersMu.Unlock()
		w.await("success", 7*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}

// Whether the operator has its rights can't be learnt everywhere.
func TestRightsThatNobodyTells(t *testing.T) {
	reviews := schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}
	for name, tc := range map[string]struct {
		rules, access error
		success       bool
	}{
		"rules are forbidden":          {rules: apierrors.NewForbidden(reviews, "", nil), success: true},
		"rules are not known":          {rules: apierrors.NewNotFound(reviews, ""), success: true},
		"nor how to ask for them":      {rules: apierrors.NewMethodNotSupported(reviews, "create"), success: true},
		"the API server has a trouble": {rules: errors.New("etcdserver: request timed out")},
		"one by one it is forbidden":   {access: apierrors.NewForbidden(reviews, "", nil), success: true},
		"one by one is a trouble":      {access: errors.New("etcdserver: request timed out")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(1)
				if tc.access != nil {
					w.lacking = map[string]bool{"patch services": true}
				}
				w.hinder(func(_, resource, _ string, _ clienttesting.Action) error {
					switch resource {
					case "selfsubjectrulesreviews":
						return tc.rules
					case "selfsubjectaccessreviews":
						w.lacking = nil // it is only asked for
						return tc.access
					}
					return nil
				})
				w.add("etcdrestores", testRestore())
				stop := w.run()
				defer stop()
				if tc.success {
					w.await("success", time.Minute, in(api.RestorePhaseSucceeded, w))
					return
				}
				w.await("the reason", time.Minute, func() bool {
					st := w.restore().Status
					return st.Phase == api.RestorePhaseRetrying && strings.Contains(st.Reason, "request timed out")
				})
			})
		})
	}
}

// An authorizer that has no rules to report is asked for each right.
func TestRightsOfAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		w.lacking = map[string]bool{"patch services": true}
		asked := 0
		w.hinder(func(_, resource, _ string, _ clienttesting.Action) error {
			if resource == "selfsubjectaccessreviews" {
				w.lacking = nil // the rules reported less than there is
				asked++
			}
			return nil
		})
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("success", time.Minute, in(api.RestorePhaseSucceeded, w))
		if asked != 1 {
			t.Errorf("asked for %d rights, want the one that seemed to be missing", asked)
		}
	})
}
