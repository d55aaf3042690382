// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// right is what RBAC grants: a verb on a resource.
type right struct {
	verb, group, resource, subresource string
	// name is that of the one object which it is about; "": it is about none, as with
	// create and list, or about several.
	name string
	// several means that it is about objects whose names show when they are found.
	several bool
}

// String is as kubectl auth can-i takes it, such as "update etcdrestores/status".
func (r right) String() string {
	if r.subresource != "" {
		return r.verb + " " + r.resource + "/" + r.subresource
	}
	return r.verb + " " + r.resource
}

// needed are the rights without which a restore stays half-way, once it has begun; of a
// cluster whose members have volumes, or not. Not among them are those that it can do
// without: to write events, and to remove what is left when the cluster is back
// (deniedToken and so on).
func needed(obj *api.EtcdRestore, persistent bool) []right {
	cluster := func(verb, name string) right {
		return right{verb: verb, group: api.GroupName, resource: api.EtcdClusterResourcePlural, name: name}
	}
	all := []right{
		{verb: "get", group: api.GroupName, resource: api.EtcdRestoreResourcePlural, name: obj.Name},
		{verb: "patch", group: api.GroupName, resource: api.EtcdRestoreResourcePlural, name: obj.Name},
		{verb: "update", group: api.GroupName, resource: api.EtcdRestoreResourcePlural, subresource: "status", name: obj.Name},
		cluster("get", obj.Name), cluster("create", ""), cluster("patch", obj.Name), cluster("delete", obj.Name),
		{verb: "list", resource: "pods"},
		{verb: "delete", resource: "pods", several: true},
		{verb: "list", resource: "services"},
		{verb: "patch", resource: "services", several: true},
		{verb: "list", resource: "persistentvolumeclaims"},
		{verb: "get", resource: "secrets", name: tokenSecret(obj.Name)},
		{verb: "create", resource: "secrets"},
	}
	switch {
	case !persistent:
		return all
	case obj.Spec.EffectiveOldVolumes() == api.OldVolumesDeleteFirst:
		return append(all, right{verb: "delete", resource: "persistentvolumeclaims", several: true})
	}
	return append(all, right{verb: "patch", resource: "persistentvolumeclaims", several: true})
}

// ungranted are those of some rights that no rule grants.
func ungranted(rights []right, rules []authorizationv1.ResourceRule) (missing []right) {
	for _, r := range rights {
		if !slices.ContainsFunc(rules, r.grantedBy) {
			missing = append(missing, r)
		}
	}
	return missing
}

// grantedBy reads a rule as the API server does. A rule for some names counts for what
// may have any: which those are, nobody knows yet.
func (r right) grantedBy(rule authorizationv1.ResourceRule) bool {
	has := func(list []string, wanted ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(wanted, s) })
	}
	resources := []string{r.resource}
	if r.subresource != "" {
		resources = []string{r.resource + "/" + r.subresource, "*/" + r.subresource}
	}
	named := len(rule.ResourceNames) == 0 || r.several || r.name != "" && slices.Contains(rule.ResourceNames, r.name)
	return named && has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) && has(rule.Resources, resources...)
}

// errUngranted shows what is missing, and what to do about it.
func errUngranted(namespace string, missing []right) error {
	words := make([]string, len(missing))
	for i, r := range missing {
		words[i] = r.String()
	}
	return fmt.Errorf("in the namespace %s the service account of the restore operator lacks rights without which the restore would stay half-way: %s; %s",
		namespace, strings.Join(words, ", "), notice.ApplyRoles)
}
