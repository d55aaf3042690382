// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	clientPort  = 2379
	peerPort    = 2380
	metricsPort = 2381

	appLabel     = "app"
	appName      = "etcd"
	clusterLabel = "etcd_cluster"
	nodeLabel    = "etcd_node"

	versionAnnotation = "etcd.version"
	// operatorAnnotations begin the keys of all other annotations that the
	// operator makes.
	operatorAnnotations = "etcd.database.coreos.com/"
	// previousVersionAnnotation is the version of etcd that ran on a pod's data
	// before its image was changed: the one to go back to if the new doesn't run.
	previousVersionAnnotation = operatorAnnotations + "previous-version"
	// startedAnnotation on a pod is the ID of the member that has served from it. It
	// outlives the disk of the pod's node, and is never taken off again.
	startedAnnotation = operatorAnnotations + "started"
	// sourceAnnotation on a seed's pod identifies the backup that it starts on.
	sourceAnnotation = operatorAnnotations + "seed-backup"
	// imageAnnotation on a pod is the image of etcd that the operator asked for.
	// Admission may have put another one into the pod.
	imageAnnotation = operatorAnnotations + "image"
)

// names gives the names and URLs of what belongs to one cluster.
type names struct {
	namespace, cluster string
	clusterDomain      string // suffix of the members' names, "" or with a leading dot
	peerTLS, clientTLS bool
	service            string // of the client Service, "" for the default
}

func namesOf(obj *api.EtcdCluster) names {
	n := names{
		namespace: obj.Namespace, cluster: obj.Name,
		clusterDomain: obj.Spec.ClusterDomain(),
		peerTLS:       obj.Spec.PeerTLS(), clientTLS: obj.Spec.ClientTLS(),
	}
	if obj.Spec.Service != nil {
		n.service = obj.Spec.Service.Name
	}
	return n
}

func (n names) peerService() string { return n.cluster }

func (n names) clientService() string {
	if n.service != "" {
		return n.service
	}
	return n.cluster + "-client"
}

func (n names) budget() string { return n.cluster }

// newMember makes up the name of a member and its pod.
func (n names) newMember() string { return n.cluster + "-" + rand.String(10) }

func (n names) domain() string {
	return "." + n.cluster + "." + n.namespace + ".svc" + n.clusterDomain
}

// host is the DNS name of a member's pod: hostname and subdomain of the pod make
// the peer Service serve it.
func (n names) host(member string) string { return member + n.domain() }

func (n names) peerURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.peerTLS), n.host(member), peerPort)
}

func (n names) clientURL(member string) string {
	return fmt.Sprintf("%s://%s:%d", scheme(n.clientTLS), n.host(member), clientPort)
}

func scheme(tls bool) string {
	if tls {
		return "https"
	}
	return "http"
}

// memberAt returns the member that a host of a peer URL belongs to, or "" for a
// host that is not of this cluster's making.
func (n names) memberAt(host string) string {
	name, ok := strings.CutSuffix(host, n.domain())
	if !ok || name == "" || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// labels are those by which the operator, Services and users find the pods.
func (n names) labels() map[string]string {
	return map[string]string{appLabel: appName, clusterLabel: n.cluster}
}
