// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Ports of members, and annotations of pods.
const (
	ClientPort  = 2379
	peerPort    = 2380
	MetricsPort = 2381

	VersionAnnotation = api.VersionAnnotation
	// PreviousVersionAnnotation is the version of etcd that ran on a pod's data
	// before its image was changed: the one to go back to if the new doesn't run.
	PreviousVersionAnnotation = api.OperatorAnnotations + "previous-version"
	// StartedAnnotation on a pod is the ID of the member that has served from it. It
	// outlives the disk of the pod's node, and is never taken off again.
	StartedAnnotation = api.OperatorAnnotations + "started"
	// sourceAnnotation on a seed's pod identifies the backup that it starts on.
	sourceAnnotation = api.OperatorAnnotations + "seed-backup"
	// ImageAnnotation on a pod is the image of etcd that the operator asked for.
	// Admission may have put another one into the pod.
	ImageAnnotation = api.OperatorAnnotations + "image"
)

// Names gives the names and URLs of what belongs to one cluster.
type Names struct {
	Namespace, Cluster string
	ClusterDomain      string // suffix of the members' names, "" or with a leading dot
	peerTLS, clientTLS bool
	service            string // of the client Service, "" for the default
}

// NamesOf are the names of a cluster.
func NamesOf(obj *api.EtcdCluster) Names {
	n := Names{
		Namespace: obj.Namespace, Cluster: obj.Name,
		ClusterDomain: obj.Spec.ClusterDomain(),
		peerTLS:       obj.Spec.PeerTLS(), clientTLS: obj.Spec.ClientTLS(),
	}
	if obj.Spec.Service != nil {
		n.service = obj.Spec.Service.Name
	}
	return n
}

func (n Names) peerService() string { return n.Cluster }

func (n Names) clientService() string {
	if n.service != "" {
		return n.service
	}
	return n.Cluster + "-client"
}

// Budget is the name of the PodDisruptionBudget.
func (n Names) Budget() string { return n.Cluster }

// Domain is what follows the name of a pod in its DNS name.
func (n Names) Domain() string {
	return "." + n.Cluster + "." + n.Namespace + ".svc" + n.ClusterDomain
}

// Host is the DNS name of a member's pod: hostname and subdomain of the pod make
// the peer Service serve it.
func (n Names) Host(member string) string { return member + n.Domain() }

// PeerURL is where the other members reach a member.
func (n Names) PeerURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.peerTLS), n.Host(member), peerPort)
}

// ClientURL is where clients reach a member.
func (n Names) ClientURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.clientTLS), n.Host(member), ClientPort)
}

func scheme(tls bool) string {
	if tls {
		return "https"
	}
	return "http"
}

// MemberAt returns the member that a host of a peer URL belongs to, or "" for a
// host that is not of this cluster's making.
func (n Names) MemberAt(host string) string {
	name, ok := strings.CutSuffix(host, n.Domain())
	if !ok || name == "" || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// Labels are those by which the operator, Services and users find the pods.
func (n Names) Labels() map[string]string {
	return map[string]string{api.AppLabel: api.AppEtcd, api.ClusterLabel: n.Cluster}
}
