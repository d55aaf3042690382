// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Level is how much a finding weighs.
type Level string

// Levels of findings.
const (
	// Note needs no decision.
	Note Level = "note"
	// Problem stops the move, unless the user accepts it.
	Problem Level = "problem"
	// Obstacle stops the move.
	Obstacle Level = "obstacle"
)

// Finding is what a check found.
type Finding struct {
	Level   Level
	Message string
	// Fix is what to do; empty for most notes.
	Fix string
}

// Checked holds what checks found.
type Checked struct {
	Findings []Finding
}

func (c *Checked) add(level Level, fix, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{level, fmt.Sprintf(format, args...), fix})
}

// Has reports whether there is a finding of a level.
func (c *Checked) Has(level Level) bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Level == level })
}

// check looks for what does not fit.
func (m *Move) check(ctx context.Context, p *Plan, elsewhere []*old) error {
	p.checkDeployments(elsewhere, m.AnyScope)
	all, err := m.clusters(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if m.inScope(c, p.wide()) {
			p.checkCluster(c)
		}
	}
	m.checkNobodys(p, all, elsewhere)
	for _, look := range []func(context.Context, *Plan) error{m.checkDefinitions, m.checkBindings, m.checkIdentities} {
		if err := look(ctx, p); err != nil {
			return err
		}
	}
	for _, look := range []func(context.Context, *Plan, []*api.EtcdCluster) error{m.checkBudgets, m.checkOwners} {
		if err := look(ctx, p, all); err != nil {
			return err
		}
	}
	if err := m.checkBackups(ctx, p, elsewhere); err != nil {
		return err
	}
	return m.rehearse(ctx, p)
}

// checkDeployments compares the old Deployments with each other and with those of other
// namespaces.
func (p *Plan) checkDeployments(elsewhere []*old, anyScope bool) {
	seen := map[string]string{}
	for _, o := range p.olds {
		if keeper := o.keeper(); keeper != "" {
			p.add(Problem, "remove it there, and keep the EtcdClusters and the CRDs", "%s keeps the Deployment %s, and would start it again", keeper, o.Name)
		}
		if release, managed := o.helm(); managed {
			p.add(Note, "do not upgrade or roll back that release; before you uninstall it, make sure that it holds no EtcdClusters and no CRDs",
				"Helm manages the Deployment %s (release %s): helm upgrade would start the old operator again", o.Name, release)
		}
		if o.wide != p.wide() {
			p.add(Obstacle, "give all of them the same scope, or scale one to 0 and delete it", "some Deployments have -cluster-wide, and %s has not", o.Name)
		}
		for _, program := range o.programs {
			if other := seen[program]; other != "" && other != o.Name {
				p.add(Obstacle, "delete one of them", "both Deployments %s and %s run %s", other, o.Name, program)
			}
			seen[program] = o.Name
		}
		if o.replicas() == 0 {
			p.add(Note, "", "the Deployment %s has no pods; its successor gets one", o.Name)
		}
		p.noteLost(o)
	}
	for _, o := range elsewhere {
		p.checkElsewhere(o, anyScope)
	}
}

// checkElsewhere compares the operators after the move with a Deployment of another namespace.
func (p *Plan) checkElsewhere(o *old, anyScope bool) {
	for _, program := range o.programs {
		same := ofProgram(p.olds, program) != nil &&
			(p.wide() && o.wide || program != clusterProgram && (anyScope || o.anyScope))
		switch {
		case same && ours(o):
			p.add(Problem, "scale it to 0 first; or delete the Deployment of "+program+" here, and leave its objects to the other one",
				"the Deployment %s/%s of this release also runs %s for the same objects", o.Namespace, o.Name, program)
		case same:
			p.add(Problem, "scale it to 0 first", "the Deployment %s/%s also runs %s, and two would lead at once", o.Namespace, o.Name, program)
		case !ours(o):
			p.checkOlder(o, program)
		}
	}
}

// checkOlder names an operator of an earlier release that continues in another namespace. It writes
// the status together with the rest of the object, and the new CRDs ignore that. So it does again, at its
// next start at the latest, what it has no record of.
func (p *Plan) checkOlder(o *old, program string) {
	const again = "the older operator %s/%s shares the CRDs: with the new ones it cannot record that an %s is done, and repeats it"
	switch program {
	case clusterProgram:
		p.add(Problem, "move it right after this one, and create no cluster there meanwhile",
			"the older operator %s/%s shares the CRDs: with the new ones it cannot write the status", o.Namespace, o.Name)
	case backupProgram:
		p.add(Problem, "move it right after this one", again, o.Namespace, o.Name, api.EtcdBackupResourceKind)
	case restoreProgram:
		p.add(Problem, "scale it to 0 first, and move it after this one",
			again+": the cluster loses all later writes", o.Namespace, o.Name, api.EtcdRestoreResourceKind)
	}
}

// checkBindings looks for ClusterRoleBindings that operators of another namespace have their rights by.
func (m *Move) checkBindings(ctx context.Context, p *Plan) error {
	for _, object := range p.after {
		if object.GetKind() != bindingKind {
			continue
		}
		live, err := m.get(ctx, kinds[bindingKind], object.GetName())
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, binding); err != nil {
			return fmt.Errorf("read the ClusterRoleBinding %s: %w", live.GetName(), err)
		}
		for _, subject := range binding.Subjects {
			if subject.Namespace != "" && subject.Namespace != m.Namespace {
				p.add(Obstacle, "leave the objects to the operator there; or stop it and delete the ClusterRoleBinding",
					"the ClusterRoleBinding %s gives rights to the service account %s/%s, which would lose them", binding.Name, subject.Namespace, subject.Name)
			}
		}
	}
	return nil
}

// noteLost says which settings of an old Deployment its successor does not have.
func (p *Plan) noteLost(o *old) {
	spec := &o.Spec.Template.Spec
	for i := range spec.Containers {
		c := &spec.Containers[i]
		for _, env := range c.Env {
			limit := env.Name == "GOMEMLIMIT" && env.ValueFrom != nil // as in the new Deployment
			if env.Name != "MY_POD_NAME" && env.Name != "MY_POD_NAMESPACE" && !limit {
				p.add(Note, "", "the variable %s of %s is not carried over", env.Name, o.Name)
			}
		}
		for _, word := range append(slices.Clone(c.Command), c.Args...) {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if strings.HasPrefix(word, "-") && name != "cluster-wide" && name != "create-crd" {
				p.add(Note, "", "the flag %s of %s is not carried over", word, o.Name)
			}
		}
		if programOf(c) != "" && len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
			p.add(Note, "set them in the new Deployment after the move, if its own are too small", "the resources of the container %s of %s are not carried over", c.Name, o.Name)
		}
		if programOf(c) == "" {
			p.add(Note, "", "the container %s of %s is not carried over", c.Name, o.Name)
		}
	}
	for i := range spec.Volumes {
		p.add(Note, "", "the volume %s of %s is not carried over", spec.Volumes[i].Name, o.Name)
	}
}

// checkCluster looks for what the new operator would find in the middle of a change, and for
// what it refuses.
func (p *Plan) checkCluster(c *api.EtcdCluster) {
	name := c.Namespace + "/" + c.Name
	if !p.Continues {
		const fix = "wait until the old operator has finished, or repair the cluster"
		switch ready, unready := len(c.Status.Members.Ready), len(c.Status.Members.Unready); {
		case c.Status.Phase != api.ClusterPhaseRunning:
			p.add(Problem, fix, "the EtcdCluster %s has the phase %q", name, c.Status.Phase)
		case unready > 0 || ready != c.Spec.Size:
			p.add(Problem, fix, "the EtcdCluster %s has %d of %d members ready", name, ready, c.Spec.Size)
		case c.Status.TargetVersion != "":
			p.add(Problem, fix, "the EtcdCluster %s is being upgraded to %s", name, c.Status.TargetVersion)
		}
	}
	_, beyond := api.Tolerated(c)
	if refused := api.ValidateEtcdCluster(c); len(beyond) > 0 {
		p.add(Problem, "correct the spec first", "the new operator would leave the EtcdCluster %s alone: %v", name, beyond.ToAggregate())
	} else if len(refused) > 0 {
		p.add(Note, "", "the new operator follows the spec of %s without the refused parts (doc/user/adopt.md): %v", name, refused.ToAggregate())
	}
	if c.Spec.Paused {
		p.add(Note, "", "the EtcdCluster %s is paused, and stays so", name)
	}
}

// checkNobodys names the clusters that no operator handles after the move.
func (m *Move) checkNobodys(p *Plan, all []*api.EtcdCluster, elsewhere []*old) {
	if ofProgram(p.olds, clusterProgram) == nil {
		return
	}
	for _, c := range all {
		scope, annotated := c.Annotations[api.ScopeAnnotation]
		switch {
		case m.inScope(c, p.wide()) || c.Namespace != m.Namespace || handled(c, clusterProgram, elsewhere):
		case annotated && scope != api.ScopeClusterWide:
			p.add(Note, "remove the annotation, or correct it", "no operator handles the EtcdCluster %s/%s, now or later: its annotation %s is %q", c.Namespace, c.Name, api.ScopeAnnotation, scope)
		default:
			p.add(Note, "", "the EtcdCluster %s/%s is in the scope of other operators (annotation %s), now and later", c.Namespace, c.Name, api.ScopeAnnotation)
		}
	}
}

// handled reports whether one of the Deployments handles an object, by the scopes of v0.9.4.
func handled(object metav1.Object, program string, olds []*old) bool {
	annotated := object.GetAnnotations()[api.ScopeAnnotation] == api.ScopeClusterWide
	return slices.ContainsFunc(olds, func(o *old) bool {
		if !slices.Contains(o.programs, program) {
			return false
		}
		return o.anyScope && program != clusterProgram || o.wide == annotated && (o.wide || o.Namespace == object.GetNamespace())
	})
}

// checkBackups looks for EtcdBackups and EtcdRestores that the fork's operators handled, and
// that nobody handles after the move.
func (m *Move) checkBackups(ctx context.Context, p *Plan, elsewhere []*old) error {
	if m.AnyScope {
		return nil
	}
	for program, r := range map[string]resource{backupProgram: backups, restoreProgram: restores} {
		if ofProgram(p.olds, program) == nil {
			continue
		}
		objects, err := m.everywhere(ctx, r)
		if err != nil {
			return err
		}
		var names []string
		for i := range objects {
			if object := &objects[i]; !m.inScope(object, p.wide()) && !handled(object, program, elsewhere) {
				names = append(names, object.GetNamespace()+"/"+object.GetName())
			}
		}
		if len(names) > 0 {
			p.add(Problem, "--any-scope lets the backup and restore operators handle all objects, as the fork does",
				"no operator would handle these %s: %s", r.Resource, strings.Join(names, ", "))
		}
	}
	return nil
}

// checkBudgets looks for PodDisruptionBudgets of users. Kubernetes evicts no pod that has two.
func (m *Move) checkBudgets(ctx context.Context, p *Plan, all []*api.EtcdCluster) error {
	list, err := m.everywhere(ctx, budgets)
	if err != nil {
		return err
	}
	for i := range list {
		budget := &policyv1.PodDisruptionBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, budget); err != nil {
			return fmt.Errorf("read the PodDisruptionBudget %s/%s: %w", list[i].GetNamespace(), list[i].GetName(), err)
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue // the API server evicts nothing because of it
		}
		for _, c := range all {
			if owner := metav1.GetControllerOf(budget); owner != nil && owner.UID == c.UID {
				continue
			}
			if c.Namespace == budget.Namespace && m.inScope(c, p.wide()) && c.Spec.HasDisruptionBudget() && selector.Matches(podLabels(c)) {
				p.add(Problem, "delete it, or set podDisruptionBudget: false in the cluster",
					"the PodDisruptionBudget %s/%s selects pods of %s: beside the operator's own, Kubernetes evicts none of them", budget.Namespace, budget.Name, c.Name)
			}
		}
	}
	return nil
}

// podLabels are those of the members' pods.
func podLabels(c *api.EtcdCluster) labels.Set {
	set := labels.Set{}
	if c.Spec.Pod != nil {
		set = labels.Merge(set, c.Spec.Pod.Labels)
	}
	return labels.Merge(set, labels.Set{api.AppLabel: api.AppEtcd, api.ClusterLabel: c.Name})
}

// checkOwners looks for members on volumes that run as root, as v0.9.4 creates them.
func (m *Move) checkOwners(ctx context.Context, p *Plan, all []*api.EtcdCluster) error {
	for _, c := range all {
		if !m.inScope(c, p.wide()) || !c.Spec.Persistent() {
			continue
		}
		if pod := c.Spec.Pod; pod.SecurityContext != nil && pod.SecurityContext.RunAsUser != nil {
			continue
		}
		list, err := m.client.Resource(pods.GroupVersionResource).Namespace(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{api.ClusterLabel: c.Name}).String()})
		if err != nil {
			return fmt.Errorf("list the pods of %s/%s: %w", c.Namespace, c.Name, err)
		}
		if !slices.ContainsFunc(list.Items, mayBeRoot) {
			continue
		}
		namespace, err := m.client.Resource(namespaces.GroupVersionResource).Get(ctx, c.Namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if namespace.GetLabels()["pod-security.kubernetes.io/enforce"] == "restricted" {
			p.add(Problem, "change the owner of the files to 65532, or enforce the baseline level",
				"members of %s/%s may own their data as root, and the namespace refuses pods that run as root", c.Namespace, c.Name)
			continue
		}
		p.add(Note, "", "members of %s/%s run as the user of their image: on volumes without fsGroup, later pods run as the owner of the data", c.Namespace, c.Name)
	}
	return nil
}

func mayBeRoot(object unstructured.Unstructured) bool {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil {
		return false
	}
	user := pod.Spec.SecurityContext
	return user == nil || user.RunAsUser == nil || *user.RunAsUser == 0
}

// rehearse lets the API server check each write without doing it: rights, schemas, and fields
// that cannot change.
func (m *Move) rehearse(ctx context.Context, p *Plan) error {
	const fix = "correct what the API server names, or get the right from an administrator"
	dryRun := []string{metav1.DryRunAll}
	if !p.Continues {
		if err := m.writeRecord(ctx, p.before, dryRun); err != nil {
			p.add(Obstacle, fix, "%v", err)
		}
	}
	for _, o := range p.olds {
		there, err := m.get(ctx, deployments, o.Name)
		if err == nil && there != nil && !ours(there) {
			err = m.scale(ctx, there, 0, dryRun)
		}
		if err != nil {
			p.add(Obstacle, fix, "%v", err)
		}
	}
	for _, object := range p.after {
		if object.GetKind() == "Deployment" {
			// The old one of this name is deleted before, so the new one is a creation.
			object = object.DeepCopy()
			object.SetName(object.GetName() + "-rehearsal")
		}
		if err := m.put(ctx, object, true); err != nil {
			p.add(Obstacle, fix, "%v", err)
		}
	}
	return nil
}
