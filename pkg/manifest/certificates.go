// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
)

// CertForms are the forms of a cluster's Secrets.
type CertForms struct{ Peer, Server, Operator certsecret.Form }

// Certificate is a certificate that is mounted into members. The files have the
// names of v0.9.4, whatever the Secret's form.
type Certificate struct {
	volume, dir string
	certsecret.Files
}

// The certificates that members use.
var (
	PeerCert   = Certificate{"member-peer-tls", "/etc/etcdtls/member/peer-tls", certsecret.Peer}
	ServerCert = Certificate{"member-server-tls", "/etc/etcdtls/member/server-tls", certsecret.Server}
	// OperatorCert is not for etcd but for those who run etcdctl in its pod.
	OperatorCert = Certificate{"operator-etcd-tls", "/etc/etcdtls/operator/etcd-tls", certsecret.Client}
)

func (c Certificate) path(file string) string { return c.dir + "/" + file }

func (c Certificate) mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: c.volume, MountPath: c.dir, ReadOnly: true}
}

// volumeFrom mounts exactly the three files. Where a Secret loses one of its
// keys, the kubelet then keeps the files that it has.
func (c Certificate) volumeFrom(secret string, form certsecret.Form) corev1.Volume {
	cert, key, ca := c.Keys(form)
	return corev1.Volume{Name: c.volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret,
		Items:      []corev1.KeyToPath{{Key: cert, Path: c.Cert}, {Key: key, Path: c.Key}, {Key: ca, Path: c.CA}},
	}}}
}

func certVolumes(obj *api.EtcdCluster, forms CertForms) []corev1.Volume {
	var volumes []corev1.Volume
	if obj.Spec.PeerTLS() {
		volumes = append(volumes, PeerCert.volumeFrom(obj.Spec.PeerSecret(), forms.Peer))
	}
	if obj.Spec.ClientTLS() {
		volumes = append(volumes, ServerCert.volumeFrom(obj.Spec.ServerSecret(), forms.Server))
		if s := obj.Spec.OperatorSecret(); s != "" {
			volumes = append(volumes, OperatorCert.volumeFrom(s, forms.Operator))
		}
	}
	return volumes
}

// certMounts are those of the etcd container.
func certMounts(spec *api.ClusterSpec) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	if spec.PeerTLS() {
		mounts = append(mounts, PeerCert.mount())
	}
	if spec.ClientTLS() {
		mounts = append(mounts, ServerCert.mount())
		if spec.OperatorSecret() != "" {
			mounts = append(mounts, OperatorCert.mount())
		}
	}
	return mounts
}

// certFlags make members and clients show certificates to each other.
//
// What etcd asks of the peer certificate, which is both a server's and a client's:
//
//   - Whoever calls verifies it for the name in the peer URL:
//     <pod>.<cluster>.<namespace>.svc<ClusterDomain>.
//   - Whoever is called does more than to verify the chain, if the certificate has
//     DNS names (or IP addresses) at all. The address of the caller must resolve
//     to a name that is in the certificate, or that has the ending of one of its
//     wildcards; or else one of its names that is no wildcard must resolve to the
//     address. Otherwise the connection ends with EOF for the caller and
//     "rejected connection on peer endpoint" in the log of the called.
//   - CoreDNS resolves the address of a pod to
//     <pod>.<cluster>.<namespace>.svc.<Kubernetes' domain>, as the headless
//     Service publishes it, and to <a-b-c-d>.<cluster>-client.<namespace>.svc.… as
//     well. Answers end with Kubernetes' own domain, whatever is in the URLs.
//
// So a certificate for *.<cluster>.<namespace>.svc alone makes a cluster of one
// and no second member. It takes *.<cluster>.<namespace>.svc.cluster.local as well
// or, where the domain is not known, <cluster>.<namespace>.svc: the name of the
// headless Service resolves to the addresses of all members, but answers that are
// cached delay a new one by seconds.
//
// The names in certificates of clients are not looked up. etcd's own HTTP gateway
// is a client that shows the server certificate: without the usage "client auth"
// in it, only gRPC works.
func certFlags(spec *api.ClusterSpec) []string {
	var flags []string
	if spec.PeerTLS() {
		flags = append(flags,
			"--peer-client-cert-auth=true",
			"--peer-trusted-ca-file="+PeerCert.path(PeerCert.CA),
			"--peer-cert-file="+PeerCert.path(PeerCert.Cert),
			"--peer-key-file="+PeerCert.path(PeerCert.Key))
	}
	if spec.ClientTLS() {
		flags = append(flags,
			"--client-cert-auth=true",
			"--trusted-ca-file="+ServerCert.path(ServerCert.CA),
			"--cert-file="+ServerCert.path(ServerCert.Cert),
			"--key-file="+ServerCert.path(ServerCert.Key))
	}
	return flags
}
