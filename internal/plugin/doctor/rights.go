// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// right is one verb on one resource.
type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.group != "" {
		text += "." + r.group
	}
	return text
}

func (r right) attributes(namespace string) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource}
}

// yours are the rights that the plugin's commands use, and what each is for.
var yours = []struct {
	right
	use   string
	level Level
}{
	{right{"get", api.GroupName, "etcdclusters", ""}, "all commands", Failure},
	{right{"list", api.GroupName, "etcdclusters", ""}, "commands without the name of a cluster", Warning},
	{right{"list", "", "pods", ""}, "all commands", Failure},
	{right{"get", "", "pods", ""}, "replace and import", Warning},
	{right{"create", "", "pods", "portforward"}, "status and import ask members", Warning},
	{right{"get", "", "secrets", ""}, "status and certs of clusters with TLS, and import", Warning},
	{right{"create", "", "pods", "exec"}, "ctl", Warning},
	{right{"get", "", "pods", "log"}, "logs and report", Warning},
	{right{"patch", api.GroupName, "etcdclusters", ""}, "pause, resume and upgrade", Warning},
	{right{"delete", "", "pods", ""}, "replace", Warning},
	{right{"get", "", "persistentvolumeclaims", ""}, "replace with the volume", Warning},
	{right{"delete", "", "persistentvolumeclaims", ""}, "replace with the volume", Warning},
	{right{"list", "", "persistentvolumeclaims", ""}, "recover", Warning},
	{right{"list", api.GroupName, "etcdbackups", ""}, "status, backup, restore and recover", Warning},
	{right{"get", api.GroupName, "etcdbackups", ""}, "backup", Warning},
	{right{"create", api.GroupName, "etcdbackups", ""}, "backup", Warning},
	{right{"get", api.GroupName, "etcdrestores", ""}, "restore and recover", Warning},
	{right{"create", api.GroupName, "etcdrestores", ""}, "restore", Warning},
	{right{"delete", api.GroupName, "etcdrestores", ""}, "restore", Warning},
}

func (d *Doctor) yourRights(ctx context.Context) {
	const check = "your rights"
	allowed := 0
	for _, r := range yours {
		review, err := d.Access.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes(d.Access.Namespace)},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			d.unknown(check, err)
			return
		case review.Status.Allowed:
			allowed++
		default:
			d.add(check, r.level, "ask an administrator for the right to "+r.String(), "you may not %s in the namespace %s: %s", r, d.Access.Namespace, r.use)
		}
	}
	if allowed == len(yours) {
		d.add(check, OK, "", "you may use all commands in the namespace %s; adopt needs a cluster administrator", d.Access.Namespace)
	}
}

// theirs are rights that the operators of clusters can't do without.
var theirs = map[string][]right{
	"etcd-operator": {
		{"list", api.GroupName, "etcdclusters", ""}, {"watch", api.GroupName, "etcdclusters", ""}, {"update", api.GroupName, "etcdclusters", "status"},
		{"create", "", "pods", ""}, {"delete", "", "pods", ""}, {"watch", "", "pods", ""}, {"create", "", "services", ""}, {"get", "", "secrets", ""},
		{"create", "policy", "poddisruptionbudgets", ""}, {"create", "", "persistentvolumeclaims", ""}, {"create", "", "events", ""},
	},
	"etcd-backup-operator": {
		{"list", api.GroupName, "etcdbackups", ""}, {"update", api.GroupName, "etcdbackups", "status"}, {"get", api.GroupName, "etcdclusters", ""},
		{"list", "", "pods", ""}, {"get", "", "secrets", ""},
	},
	"etcd-restore-operator": {
		{"list", api.GroupName, "etcdrestores", ""}, {"update", api.GroupName, "etcdrestores", "status"}, {"create", api.GroupName, "etcdclusters", ""},
		{"delete", api.GroupName, "etcdclusters", ""}, {"get", "", "secrets", ""},
	},
}

// rightsOf asks for the rights of a service account in the namespace.
func (d *Doctor) rightsOf(ctx context.Context, program, serviceAccount, namespace string) {
	check := program + " rights"
	user := fmt.Sprintf("system:serviceaccount:%s:%s", namespace, serviceAccount)
	var missing []string
	for _, r := range theirs[program] {
		review, err := d.Access.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: r.attributes(d.Access.Namespace),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			d.unknown(check, err)
			return
		}
		if !review.Status.Allowed {
			missing = append(missing, r.String())
		}
	}
	if len(missing) > 0 {
		// The script grants to the service account that each pod of the namespace has by default.
		fix := "grant them: example/rbac/create_role.sh"
		if serviceAccount != "default" {
			fix = "apply the roles of the release that runs again (doc/user/rbac.md)"
		}
		d.add(check, Failure, fix, "the service account %s/%s may not %s", namespace, serviceAccount, strings.Join(missing, ", "))
		return
	}
	d.add(check, OK, "", "the service account %s/%s has the rights that matter", namespace, serviceAccount)
}
