// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// BuildPod builds the pod of a member. Admission refuses settings that users must not change.
// In objects from before a rule, the operator's own setting wins here, because a member with a
// wrong setting may do permanent damage.
func BuildPod(obj *api.EtcdCluster, p MemberPod, certs CertForms, operatorImage string) (*corev1.Pod, error) {
	version, err := etcd.ParseVersion(p.Version)
	if err != nil {
		return nil, err
	}
	policy := podPolicy(obj)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            p.Name,
			Namespace:       obj.Namespace,
			Labels:          memberLabels(obj, p.Name),
			Annotations:     podAnnotations(policy, version),
			OwnerReferences: []metav1.OwnerReference{OwnerOf(obj)},
		},
		Spec: corev1.PodSpec{
			Hostname:  p.Name,
			Subdomain: NamesOf(obj).peerService(),
			// etcd does not call Kubernetes.
			ServiceAccountName:           policy.ServiceAccountName,
			AutomountServiceAccountToken: new(false),
			// A Service named etcd would put ETCD_PORT and the like into the environment,
			// where etcd takes them for unknown settings.
			EnableServiceLinks: new(false),
			// The kubelet restarts a crashed etcd in place, with its data.
			RestartPolicy:             corev1.RestartPolicyAlways,
			SecurityContext:           podSecurity(policy.SecurityContext, ownerFor(&obj.Spec, p), p.Reserved),
			PriorityClassName:         obj.Spec.EffectivePriorityClass(),
			NodeSelector:              policy.NodeSelector,
			Affinity:                  affinity(obj, policy),
			Tolerations:               policy.Tolerations,
			TopologySpreadConstraints: topologySpread(obj, policy),
			ImagePullSecrets:          policy.ImagePullSecrets,
			InitContainers:            append(restoreContainers(obj, policy, p, version, operatorImage), checkDNS(obj, policy, p, operatorImage)),
			Containers:                []corev1.Container{etcdProcess(obj, policy, p, version)},
			Volumes:                   slices.Concat([]corev1.Volume{dataVolumeOf(policy, p)}, startedVolumes(obj, policy, p), restoreVolumes(p), certVolumes(obj, certs)),
		},
	}
	if p.Source != nil {
		pod.Annotations[sourceAnnotation] = SourceDigest(p.Source)
	}
	return pod, nil
}

// ownerFor is the user as which a member has to run because of its data; the zero Owner if it
// does not matter, or if the spec decides.
func ownerFor(spec *api.ClusterSpec, p MemberPod) Owner {
	if !MayRunAs(spec, p.Owner) {
		return Owner{}
	}
	return p.Owner
}

// podPolicy returns a copy of the cluster's pod policy, so that changes to the pod do not
// change the cluster.
func podPolicy(obj *api.EtcdCluster) *api.PodPolicy {
	if obj.Spec.Pod == nil {
		return &api.PodPolicy{}
	}
	return obj.Spec.Pod.DeepCopy()
}

// memberLabels are the labels of a member's pod and of its volume.
func memberLabels(obj *api.EtcdCluster, member string) map[string]string {
	labels := map[string]string{}
	if obj.Spec.Pod != nil {
		maps.Copy(labels, obj.Spec.Pod.Labels)
	}
	maps.Copy(labels, NamesOf(obj).Labels())
	labels[api.NodeLabel] = member
	return labels
}

func podAnnotations(policy *api.PodPolicy, version etcd.Version) map[string]string {
	annotations := map[string]string{}
	for key, value := range policy.Annotations {
		if !strings.HasPrefix(key, api.OperatorAnnotations) {
			annotations[key] = value
		}
	}
	annotations[VersionAnnotation] = version.String()
	return annotations
}

// OwnerOf returns the reference by which objects belong to an EtcdCluster.
func OwnerOf(obj *api.EtcdCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(obj, api.SchemeGroupVersion.WithKind(api.EtcdClusterResourceKind))
}
