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

// Certificate is a certificate that members mount. The files have v0.9.4's names, whatever the
// Secret's form.
type Certificate struct {
	volume, dir string
	certsecret.Files
}

// The certificates that members use.
var (
	PeerCert   = Certificate{"member-peer-tls", "/etc/etcdtls/member/peer-tls", certsecret.Peer}
	ServerCert = Certificate{"member-server-tls", "/etc/etcdtls/member/server-tls", certsecret.Server}
	// OperatorCert is not for etcd but for people who run etcdctl in its pod.
	OperatorCert = Certificate{"operator-etcd-tls", "/etc/etcdtls/operator/etcd-tls", certsecret.Client}
)

func (c Certificate) path(file string) string { return c.dir + "/" + file }

func (c Certificate) mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: c.volume, MountPath: c.dir, ReadOnly: true}
}

// volumeFrom mounts exactly the three files. If a Secret loses one of its keys, the kubelet
// then keeps the mounted files.
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
			operator := OperatorCert.volumeFrom(s, forms.Operator)
			// etcd does not need it. A running pod keeps the name and the keys of the Secret that it was
			// made with, and must start after a reboot of its node even if they are gone.
			operator.Secret.Optional = new(true)
			volumes = append(volumes, operator)
		}
	}
	return volumes
}

// certMounts returns the mounts of the etcd container.
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

// certFlags make members and clients present certificates to each other.
//
// etcd checks a peer certificate in both directions. The caller verifies it for the name in
// the peer URL: <pod>.<cluster>.<namespace>.svc<ClusterDomain>.
//
// The called member verifies the chain. If the certificate has DNS names or IP addresses, it
// also checks the caller's address. The address must resolve to a name in the certificate, or
// to one that a wildcard covers. Or a name without a wildcard must resolve to the address.
// Otherwise the caller gets EOF, and the called member logs "rejected connection on peer
// endpoint".
//
// CoreDNS resolves the address of a pod to <pod>.<cluster>.<namespace>.svc.<Kubernetes'
// domain>, as the headless Service publishes it, and to
// <a-b-c-d>.<cluster>-client.<namespace>.svc.… too. Its answers end with Kubernetes' own
// domain, whatever the URLs contain.
//
// So a certificate for *.<cluster>.<namespace>.svc alone is enough for one member, and for no
// second. It must also cover *.<cluster>.<namespace>.svc.cluster.local. If the domain is
// unknown, <cluster>.<namespace>.svc works: the headless Service's name resolves to the
// addresses of all members. But cached answers delay a new member by seconds.
//
// etcd does not check the names in client certificates. Its HTTP gateway is a client that
// presents the server certificate: without the usage "client auth" in it, only gRPC works.
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
