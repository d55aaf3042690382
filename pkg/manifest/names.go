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
	// PreviousVersionAnnotation is the etcd version that ran on a pod's data before the
	// operator changed its image. The operator returns to it if the new version does not run.
	PreviousVersionAnnotation = api.OperatorAnnotations + "previous-version"
	// StartedAnnotation on a pod is the ID of the member that has served from it. It survives
	// the disk of the pod's node, and is permanent.
	StartedAnnotation = api.OperatorAnnotations + "started"
	// sourceAnnotation on a seed's pod identifies the seed's backup.
	sourceAnnotation = api.OperatorAnnotations + "seed-backup"
	// ImageAnnotation on a pod is the image of etcd that the operator asked for. Admission may
	// have changed the image in the pod.
	ImageAnnotation = api.OperatorAnnotations + "image"
	// PeerCAsAnnotation on a pod names the CAs by which its etcd knows its peers, and after a space the
	// number of restarts of its container for which that holds, if any.
	PeerCAsAnnotation = api.OperatorAnnotations + "peer-cas"
	// ReplacedAnnotation on a pod names the container of etcd, and its image after admission, before
	// the operator changed the image. While both are still there, etcd has not restarted.
	ReplacedAnnotation = api.OperatorAnnotations + "replaced"
)

// Names returns the names and URLs of one cluster's objects.
type Names struct {
	Namespace, Cluster string
	ClusterDomain      string // suffix of the members' names, "" or with a leading dot
	peerTLS, clientTLS bool
	service            string // of the client Service, "" for the default
}

// NamesOf returns the names of a cluster.
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

// Budget returns the name of the PodDisruptionBudget.
func (n Names) Budget() string { return n.Cluster }

// Domain follows the name of a pod in its DNS name.
func (n Names) Domain() string {
	return "." + n.Cluster + "." + n.Namespace + ".svc" + n.ClusterDomain
}

// Host is the DNS name of a member's pod. The peer Service serves it because of the pod's
// hostname and subdomain.
func (n Names) Host(member string) string { return member + n.Domain() }

// PeerURL is the URL of a member for other members.
func (n Names) PeerURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.peerTLS), n.Host(member), peerPort)
}

// ClientURL is the URL of a member for clients.
func (n Names) ClientURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.clientTLS), n.Host(member), ClientPort)
}

// DataURL is where a container serves the database of a member. The host is in the member's certificate.
func (n Names) DataURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.clientTLS), n.Host(member), DataPort)
}

func scheme(tls bool) string {
	if tls {
		return "https"
	}
	return "http"
}

// MemberAt returns the member of a peer URL's host, or "" for a host in another form than this
// cluster's. An earlier operator may have written the cluster domain in capitals.
func (n Names) MemberAt(host string) string {
	name, domain, _ := strings.Cut(host, ".")
	if !strings.EqualFold("."+domain, n.Domain()) {
		return ""
	}
	return name
}

// Labels are the labels by which the operator, Services and users find the pods.
func (n Names) Labels() map[string]string {
	return map[string]string{api.AppLabel: api.AppEtcd, api.ClusterLabel: n.Cluster}
}
