// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// podTemplateAnnotation on a pod is the template.pod that it was made by.
	podTemplateAnnotation = "etcd.database.coreos.com/pod-template"
	// volumeTemplateAnnotation is the template.volume that a
	// PersistentVolumeClaim, or a pod with an emptyDir, was made by.
	volumeTemplateAnnotation = "etcd.database.coreos.com/volume-template"
)

// template identifies what users say about the making of members, as far as
// running members must follow it. It is taken from the spec and not from the pod
// that is built of it: an operator that builds pods in another way does not
// restart the members of all clusters.
type template struct {
	pod    string // a new pod follows it
	volume string // only a new member on a new volume follows it
}

// templateOf gives the template of a spec. certificates stands for what is in the
// Secrets that etcd reads only when it starts.
func templateOf(spec *api.ClusterSpec, certificates string) (template, error) {
	var p api.PodPolicy
	if spec.Pod != nil {
		p = *spec.Pod
	}
	// What is not here is followed in place (labels, annotations, version and
	// repository), by the next pod (busyboxImage, DNSTimeoutInSecond, the
	// operator's Secret), or can't change (ClusterDomain).
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
		spec.PriorityClassName, spec.PeerSecret(), spec.ServerSecret(), certificates,
	})
	if err != nil {
		return template{}, err
	}
	volume, err := digest(struct {
		Claim *corev1.PersistentVolumeClaimSpec
		Tmpfs bool
	}{withoutSize(p.PersistentVolumeClaimSpec), p.Tmpfs})
	return template{pod, volume}, err
}

// template is what members are to be made by now. etcd reads the CAs of its
// certificates when it starts; files that a pod mounts have the names of its
// Secrets' forms.
func (c *Cluster) template() (template, error) {
	certificates := caDigest(c.certs.held, &c.obj.Spec)
	if certificates != "" {
		certificates += fmt.Sprint(c.certForms.peer, c.certForms.server)
	}
	return templateOf(&c.obj.Spec, certificates)
}

// withoutSize leaves out the size that is asked for, since a volume can grow.
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

// podOutdated tells whether a pod was made by another template than the spec's. A
// pod that does not tell is taken as it is.
func (o *observation) podOutdated(p podState) bool {
	if p.legacy && p.version != o.spec.EffectiveVersion() && o.checkVersion() == nil {
		return true // it can't be upgraded in place
	}
	return o.template.pod != "" && p.template.pod != "" && p.template.pod != o.template.pod
}

// volumeOutdated tells whether a member's data is kept in another way than the
// spec says.
func (o *observation) volumeOutdated(m memberState) bool {
	has := ""
	switch {
	case m.volume != nil:
		has = m.volume.template
	case m.pod != nil:
		has = m.pod.template.volume
	}
	switch {
	case o.template.volume == "" || m.pod == nil && m.volume == nil:
		return false
	case has == "": // not of this operator's making
		return (m.volume != nil) != o.spec.Persistent()
	}
	return has != o.template.volume
}

// behindTemplate tells whether a member has to follow an edit of the template.
func (o *observation) behindTemplate(m memberState) bool {
	return m.pod != nil && o.podOutdated(*m.pod) || o.volumeOutdated(m)
}

// needsReplacing tells whether a member can follow the template only by another
// in its place: its data would be lost with its pod, or is kept in the wrong way.
func (o *observation) needsReplacing(m memberState) bool {
	return o.volumeOutdated(m) || m.pod != nil && o.podOutdated(*m.pod) && !m.keepsData()
}
