// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// buildPod makes the pod of a member. What the user may not say is refused at
// admission; where an object came in before a rule did, the operator's own
// setting wins here, since members that start wrongly can't be taken back.
func buildPod(obj *api.EtcdCluster, p newPod, certs certForms, operatorImage string) (*corev1.Pod, error) {
	version, err := etcd.ParseVersion(p.version)
	if err != nil {
		return nil, err
	}
	policy := podPolicy(obj)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            p.name,
			Namespace:       obj.Namespace,
			Labels:          memberLabels(obj, p.name),
			Annotations:     podAnnotations(policy, version),
			OwnerReferences: []metav1.OwnerReference{ownerOf(obj)},
		},
		Spec: corev1.PodSpec{
			Hostname:  p.name,
			Subdomain: namesOf(obj).peerService(),
			// etcd does not call Kubernetes.
			ServiceAccountName:           policy.ServiceAccountName,
			AutomountServiceAccountToken: new(false),
			// A Service named etcd would put ETCD_PORT and the like into the
			// environment, where etcd takes them for settings it doesn't know.
			EnableServiceLinks: new(false),
			// etcd that crashes starts again in place, with its data.
			RestartPolicy:             corev1.RestartPolicyAlways,
			SecurityContext:           podSecurity(policy.SecurityContext),
			PriorityClassName:         obj.Spec.PriorityClassName,
			NodeSelector:              policy.NodeSelector,
			Affinity:                  affinity(obj, policy),
			Tolerations:               policy.Tolerations,
			TopologySpreadConstraints: topologySpread(obj, policy),
			ImagePullSecrets:          policy.ImagePullSecrets,
			InitContainers:            append(restoreContainers(obj, policy, p, version, operatorImage), checkDNS(obj, policy, p, operatorImage)),
			Containers:                []corev1.Container{etcdProcess(obj, policy, p, version)},
			Volumes:                   slices.Concat([]corev1.Volume{dataVolumeOf(policy, p)}, startedVolumes(policy, p), restoreVolumes(p), certVolumes(obj, certs)),
		},
	}
	if p.source != nil {
		pod.Annotations[sourceAnnotation] = sourceDigest(p.source)
	}
	return pod, nil
}

// podPolicy is a copy of the cluster's pod policy: what is built from it may be
// changed without a change to the cluster.
func podPolicy(obj *api.EtcdCluster) *api.PodPolicy {
	if obj.Spec.Pod == nil {
		return &api.PodPolicy{}
	}
	return obj.Spec.Pod.DeepCopy()
}

// memberLabels are those of a member's pod and of its volume.
func memberLabels(obj *api.EtcdCluster, member string) map[string]string {
	labels := map[string]string{}
	if obj.Spec.Pod != nil {
		maps.Copy(labels, obj.Spec.Pod.Labels)
	}
	maps.Copy(labels, namesOf(obj).labels())
	labels[nodeLabel] = member
	return labels
}

func podAnnotations(policy *api.PodPolicy, version etcd.Version) map[string]string {
	annotations := map[string]string{}
	for key, value := range policy.Annotations {
		if !strings.HasPrefix(key, operatorAnnotations) {
			annotations[key] = value
		}
	}
	annotations[versionAnnotation] = version.String()
	return annotations
}

func ownerOf(obj *api.EtcdCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(obj, api.SchemeGroupVersion.WithKind(api.EtcdClusterResourceKind))
}
