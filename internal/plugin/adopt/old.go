// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// programs are the three operators. A Deployment of OLM runs all of them in one pod.
const (
	clusterProgram = "etcd-operator"
	backupProgram  = "etcd-backup-operator"
	restoreProgram = "etcd-restore-operator"
)

var programs = []string{clusterProgram, backupProgram, restoreProgram}

// partLabel is on the Deployments of the manifests and on their pods, and on no older ones.
const partLabel, part = "app.kubernetes.io/part-of", "etcd-operator"

func ours(object metav1.Object) bool { return object.GetLabels()[partLabel] == part }

// old is a Deployment of operators of an earlier release.
type old struct {
	*appsv1.Deployment
	// programs are what its containers run.
	programs []string
	wide     bool
	// anyScope is true for operators of this release that handle the objects of all namespaces, whatever
	// their annotation.
	anyScope bool
}

// oldOf returns a Deployment that runs an operator of an earlier release; nil if it is another.
func oldOf(object *unstructured.Unstructured) (*old, error) {
	if ours(object) {
		return nil, nil
	}
	return operatorOf(object)
}

// operatorOf returns a Deployment that runs an operator of any release; nil if it is another.
func operatorOf(object *unstructured.Unstructured) (*old, error) {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
		return nil, err
	}
	o := &old{Deployment: d}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		program := programOf(c)
		if program == "" {
			continue
		}
		o.programs = append(o.programs, program)
		o.wide = o.wide || hasFlag(c, "cluster-wide")
		o.anyScope = o.anyScope || hasFlag(c, "any-scope")
	}
	if o.programs == nil {
		return nil, nil
	}
	return o, nil
}

// programOf returns the operator that a container runs. The images of v0.9.4 and the fork have
// no entrypoint.
func programOf(c *corev1.Container) string {
	for _, word := range append(slices.Clone(c.Command), c.Args...) {
		// A shell's -c has the whole command line in one word.
		for _, name := range strings.Fields(word) {
			if name = path.Base(name); slices.Contains(programs, name) {
				return name
			}
		}
	}
	return ""
}

// hasFlag reports whether a container runs with a boolean flag.
func hasFlag(c *corev1.Container, wanted string) bool {
	for _, word := range append(slices.Clone(c.Command), c.Args...) {
		for _, flag := range strings.Fields(word) {
			name, value, given := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			if name == wanted && strings.HasPrefix(flag, "-") {
				return !given || value == "true" || value == "1" || value == "t"
			}
		}
	}
	return false
}

// selects reports whether a pod is one of the Deployment, and not of the one that replaces it
// under the same labels.
func (o *old) selects(pod metav1.Object) bool {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	return err == nil && !ours(pod) && selector.Matches(labels.Set(pod.GetLabels()))
}

// replicas is how many pods the Deployment asks for.
func (o *old) replicas() int32 {
	if o.Spec.Replicas == nil {
		return 1
	}
	return *o.Spec.Replicas
}

// keeper names who restores the Deployment after a change; empty if nobody is known to.
func (o *old) keeper() string {
	for key := range o.Labels {
		switch {
		case strings.HasPrefix(key, "olm."):
			return "the Operator Lifecycle Manager"
		case strings.HasPrefix(key, "kustomize.toolkit.fluxcd.io/"), strings.HasPrefix(key, "helm.toolkit.fluxcd.io/"):
			return "Flux"
		case key == "argocd.argoproj.io/instance":
			return "Argo CD"
		}
	}
	if _, tracked := o.Annotations["argocd.argoproj.io/tracking-id"]; tracked {
		return "Argo CD"
	}
	return ""
}

// helm returns the release of Helm that the Deployment belongs to. Charts of the time of v0.9.4 have
// the labels heritage and release. Helm changes nothing before somebody calls it.
func (o *old) helm() (release string, managed bool) {
	managed = o.Labels["app.kubernetes.io/managed-by"] == "Helm" || o.Labels["heritage"] == "Helm" || o.Labels["heritage"] == "Tiller"
	return cmp.Or(o.Annotations["meta.helm.sh/release-name"], o.Labels["app.kubernetes.io/instance"], o.Labels["release"], "unknown"), managed
}
