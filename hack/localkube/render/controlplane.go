// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render turns a cluster's Config into the arguments and files of its
// components. It is pure: text in, text out.
package render

import (
	"fmt"
	"net/netip"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// Files of the control plane below the state directory.
const (
	CACert         = "pki/ca.crt"
	ServerCert     = "pki/apiserver.crt"
	ServerKey      = "pki/apiserver.key"
	KubeletCliCert = "pki/apiserver-kubelet-client.crt"
	KubeletCliKey  = "pki/apiserver-kubelet-client.key"
	CAKey          = "pki/ca.key"
	SAKey          = "pki/sa.key"
	SAPub          = "pki/sa.pub"
	AuditPolicy    = "audit-policy.yaml"
)

// AuditLog is the API server's log of requests: the end-to-end tests compare it with the
// operator's rights.
func AuditLog(c instance.Config) string { return c.Log("audit") }

// EtcdURL is where the cluster's own etcd listens, inside the cluster's
// network namespace.
const EtcdURL = "http://127.0.0.1:2379"

// Etcd returns the arguments of the etcd for the Kubernetes objects. They end with the
// cluster, so nothing is synced to disk.
func Etcd(c instance.Config) []string {
	return []string{
		"--name=kubernetes",
		"--data-dir=" + c.Path("etcd"),
		"--listen-client-urls=" + EtcdURL,
		"--advertise-client-urls=" + EtcdURL,
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=kubernetes=http://127.0.0.1:2380",
		"--unsafe-no-fsync",
		// A single instance need not wait a second for others before it leads. At a
		// fifth of this interval, etcd took twice the processor time at rest.
		"--heartbeat-interval=100",
		"--election-timeout=500",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}
}

// APIServer returns the arguments of kube-apiserver.
func APIServer(c instance.Config) []string {
	tolerate := fmt.Sprint(c.PodTolerationSeconds)
	return []string{
		"--etcd-servers=" + EtcdURL,
		"--bind-address=" + c.Bridge().String(),
		"--advertise-address=" + c.Bridge().String(),
		"--secure-port=6443",
		"--service-cluster-ip-range=" + instance.ForStacks(c.Instance, instance.Instance.Services),
		"--authorization-mode=Node,RBAC",
		"--audit-policy-file=" + c.Path(AuditPolicy),
		"--audit-log-path=" + AuditLog(c),
		"--audit-log-mode=batch",
		"--audit-log-batch-max-wait=1s",
		"--audit-log-maxsize=256", // megabytes
		"--audit-log-maxbackup=1",
		"--allow-privileged=true",
		"--client-ca-file=" + c.Path(CACert),
		"--tls-cert-file=" + c.Path(ServerCert),
		"--tls-private-key-file=" + c.Path(ServerKey),
		"--cert-dir=" + c.Path("pki"),
		"--kubelet-client-certificate=" + c.Path(KubeletCliCert),
		"--kubelet-client-key=" + c.Path(KubeletCliKey),
		// The nodes' names resolve nowhere: without this, logs and exec fail.
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + c.Path(SAKey),
		"--service-account-key-file=" + c.Path(SAPub),
		"--default-not-ready-toleration-seconds=" + tolerate,
		"--default-unreachable-toleration-seconds=" + tolerate,
	}
}

// Audit is the policy of the audit log: requests of service accounts, except those of
// Kubernetes itself, without the objects. It logs a watch at its beginning; by default, the
// log has only its end.
func Audit() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: None
  userGroups:
  - system:serviceaccounts:kube-system
- level: Metadata
  userGroups:
  - system:serviceaccounts
- level: None
`
}

// ControllerManager returns the arguments of kube-controller-manager.
func ControllerManager(c instance.Config) []string {
	return []string{
		"--kubeconfig=" + c.Path("kubeconfigs/controller-manager"),
		"--authentication-kubeconfig=" + c.Path("kubeconfigs/controller-manager"),
		"--authorization-kubeconfig=" + c.Path("kubeconfigs/controller-manager"),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + c.Path("pki"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.Path(SAKey),
		"--root-ca-file=" + c.Path(CACert),
		"--cluster-signing-cert-file=" + c.Path(CACert),
		"--cluster-signing-key-file=" + c.Path(CAKey),
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=" + c.NodeMonitorGracePeriod.String(),
		"--node-startup-grace-period=20s",
		"--allocate-node-cidrs=false",
		"--flex-volume-plugin-dir=" + c.Path("flexvolume"),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

// Scheduler returns the arguments of kube-scheduler.
func Scheduler(c instance.Config) []string {
	return []string{
		"--kubeconfig=" + c.Path("kubeconfigs/scheduler"),
		"--authentication-kubeconfig=" + c.Path("kubeconfigs/scheduler"),
		"--authorization-kubeconfig=" + c.Path("kubeconfigs/scheduler"),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + c.Path("pki"),
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

// Corefile is the configuration of CoreDNS. It only knows the API server's objects. The
// cluster has no route to the outside, so CoreDNS refuses an unknown name at once instead of
// after a timeout.
func Corefile(c instance.Config) string {
	dns := DNS[c.DNS]
	return fmt.Sprintf(`cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    bind %[1]s
    errors
    ready %[6]s
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %[2]s
        pods verified
        ttl %[4]d
    }
%[5]s}
localkube.internal:53 {
    bind %[1]s
    hosts {
        %[3]s host.localkube.internal
        ttl 1
    }
}
.:53 {
    bind %[1]s
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`, c.Bridge(), c.Path("kubeconfigs/admin"), c.HostIP(), dns.ttl, dns.cache, netip.AddrPortFrom(c.Bridge(), 8181))
}

// CoreDNSReady is where CoreDNS reports that it has the cluster's objects.
func CoreDNSReady(c instance.Config) string {
	return "http://" + netip.AddrPortFrom(c.Bridge(), 8181).String() + "/ready"
}
