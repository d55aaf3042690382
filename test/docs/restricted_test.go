// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// heredoc matches what a command reads from the lines below it.
var heredoc = regexp.MustCompile(`(?ms)<<'?END'?$(.*?)^END$`)

// A namespace with the restricted Pod Security Standard takes all pods that the pages create.
// kubectl run sets no security context.
func TestPodsOfPagesMeetTheRestrictedStandard(t *testing.T) {
	found, err := allBlocks(root, "sh", "sh fails", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, b := range found {
		for _, command := range b.commands() {
			if strings.HasPrefix(command, "kubectl run ") {
				t.Errorf("%s: %q: use kubectl exec", b, command)
			}
		}
		manifests := []string{b.text}
		if b.kind != "yaml" {
			manifests = nil
			for _, match := range heredoc.FindAllStringSubmatch(b.text, -1) {
				manifests = append(manifests, match[1])
			}
		}
		for _, document := range strings.Split(strings.Join(manifests, "\n---\n"), "\n---\n") {
			pod := podOf(document)
			if pod == nil {
				continue
			}
			pods++
			if missing := unrestricted(pod); len(missing) > 0 {
				t.Errorf("%s: a pod lacks %q", b, missing)
			}
		}
	}
	if pods < 3 {
		t.Errorf("%d pods found", pods)
	}
}

// podOf returns the pods of an object; nil: it has none, or it is one of the operators', which
// complete the specs of their pods.
func podOf(document string) *corev1.PodSpec {
	var object struct {
		Kind string `json:"kind"`
		Spec struct {
			corev1.PodSpec `json:",inline"`

			Template struct {
				Spec corev1.PodSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		return nil // an argument of the shell is in it
	}
	switch object.Kind {
	case "Pod":
		return &object.Spec.PodSpec
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		return &object.Spec.Template.Spec
	}
	return nil
}

// unrestricted names the fields that the standard requires and a pod does not have.
func unrestricted(pod *corev1.PodSpec) (missing []string) {
	demand := func(has bool, field string) {
		if !has {
			missing = append(missing, field)
		}
	}
	of := pod.SecurityContext
	if of == nil {
		of = &corev1.PodSecurityContext{}
	}
	// etcd's image names no user, so the kubelet needs a number beside runAsNonRoot.
	demand(of.RunAsNonRoot != nil && *of.RunAsNonRoot && of.RunAsUser != nil && *of.RunAsUser > 0, "runAsNonRoot and runAsUser")
	demand(of.SeccompProfile != nil && of.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "seccompProfile")
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		own := c.SecurityContext
		if own == nil {
			own = &corev1.SecurityContext{}
		}
		demand(own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, c.Name+": allowPrivilegeEscalation: false")
		demand(own.Capabilities != nil && slices.Contains(own.Capabilities.Drop, "ALL"), c.Name+": capabilities: {drop: [ALL]}")
	}
	return missing
}
