// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// PodTemplateAnnotation on a pod is the template.pod that built it.
	PodTemplateAnnotation = api.OperatorAnnotations + "pod-template"
	// VolumeTemplateAnnotation is the template.volume that built a PersistentVolumeClaim, or a
	// pod with an emptyDir.
	VolumeTemplateAnnotation = api.OperatorAnnotations + "volume-template"
)

// Template identifies the user's settings that running members must follow. It depends on the
// spec and not on the resulting pod. So a new operator that builds pods differently does not
// restart the members of all clusters.
type Template struct {
	Pod    string // a new pod follows it
	Volume string // only a new member on a new volume follows it
	// PeerCAs are the CAs in the peer Secret, which Pod covers too; "" if unknown, or if a pod's etcd may
	// have started after the operator has read them. A running member
	// keeps those that it has read.
	PeerCAs string
}

// TemplateOf returns the template of a spec. certificates identifies the contents of Secrets
// that etcd reads only when it starts.
func TemplateOf(spec *api.ClusterSpec, certificates string) (Template, error) {
	var p api.PodPolicy
	if spec.Pod != nil {
		p = *spec.Pod
	}
	// Other fields change in place (labels, annotations, version and repository), apply to the
	// next pod (busyboxImage, DNSTimeoutInSecond, the operator's Secret), or can't change
	// (ClusterDomain).
	pod, err := digest(struct {
		Pod          api.PodPolicy
		Priority     string
		Peer, Server string
		Certificates string
	}{
		api.PodPolicy{
			NodeSelector: p.NodeSelector, Affinity: p.Affinity, AntiAffinity: p.AntiAffinity && p.Affinity == nil,
			Tolerations: p.Tolerations, TopologySpreadConstraints: p.TopologySpreadConstraints,
			Resources: p.Resources, EtcdEnv: p.EtcdEnv, ExtraArgs: p.ExtraArgs,
			SecurityContext: p.SecurityContext, ImagePullSecrets: p.ImagePullSecrets, ServiceAccountName: p.ServiceAccountName,
		},
		spec.EffectivePriorityClass(), spec.PeerSecret(), spec.ServerSecret(), certificates,
	})
	if err != nil {
		return Template{}, err
	}
	volume, err := digest(struct {
		Claim *corev1.PersistentVolumeClaimSpec
		Tmpfs bool
	}{withoutSize(p.PersistentVolumeClaimSpec), p.Tmpfs})
	return Template{Pod: pod, Volume: volume}, err
}

// withoutSize omits the requested size, since a volume can grow.
func withoutSize(claim *corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaimSpec {
	if claim == nil {
		return nil
	}
	claim = claim.DeepCopy()
	delete(claim.Resources.Requests, corev1.ResourceStorage)
	return claim
}

func digest(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("template of the members' pods: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
