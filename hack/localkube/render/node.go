// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// PauseImage is the image that holds a pod's namespaces.
const PauseImage = "localkube/pause:1"

// KubeletRoot and VolumeRoot are directories inside a node. They are mounts of directories in
// its own directory.
const (
	KubeletRoot = "/var/lib/kubelet"
	PodLogs     = "/var/log/pods"
)

// Volumes is the directory of a node that holds its volumes, and VolumeRoot is where
// the node sees it.
const Volumes = "volumes"

// VolumeRoot is where a node sees its volumes.
func VolumeRoot(c instance.Config) string { return c.Path(Volumes) }

// Containerd is the configuration of a node's containerd.
func Containerd(c instance.Config, node string) string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.opt",
]

[grpc]
  address = %[2]q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  # Without CAP_SYS_RESOURCE nobody may lower a score, and no sandbox starts.
  restrict_oom_score_adj = true
  max_container_log_line_size = 262144

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %[4]q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    discard_unpacked_layers = false

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        # It takes a fraction of runc's time, and each start of a pod calls it a dozen times.
        BinaryName = "/usr/bin/crun"

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[5]q
`, c.NodeDir(node, "containerd"), c.ContainerdSocket(node), "docker.io/"+PauseImage, c.NodeDir(node, "cni"), c.NodeDir(node, "registries"))
}

// Registries is how a node's containerd reaches registries: not at all. A node can't reach
// anything beyond this machine. So the pull of an image that is not loaded fails at once, and
// not after half a minute of DNS queries.
func Registries() string {
	const nobody = "http://127.0.0.1:1"
	return fmt.Sprintf(`server = %[1]q

[host.%[1]q]
  capabilities = ["pull", "resolve"]
`, nobody)
}

// CNI is a node's pod network: a routed link for each pod, no bridge, so that
// kube-proxy's rules see all traffic.
func CNI(c instance.Config, n int) string {
	var ranges, routes []string
	for _, i := range c.Stacks() {
		ranges = append(ranges, fmt.Sprintf(`[{"subnet": %q}]`, i.PodCIDR(n)))
		routes = append(routes, fmt.Sprintf(`{"dst": %q}`, netip.PrefixFrom(wildcard(i), 0)))
	}
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "localkube",
  "plugins": [
    {
      "type": "ptp",
      "mtu": 1500,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-addresses",
        "ranges": [%s],
        "routes": [%s]
      }
    }
  ]
}
`, strings.Join(ranges, ", "), strings.Join(routes, ", "))
}

// wildcard is the address that stands for all addresses of the instance's kind.
func wildcard(i instance.Instance) netip.Addr {
	if i.IPv6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// ResolvConf is a node's resolv.conf.
func ResolvConf(c instance.Config) string {
	return "nameserver " + c.Bridge().String() + "\n"
}

// KubeletConfig is the configuration of a node's kubelet.
func KubeletConfig(c instance.Config, n int) string {
	node := instance.NodeName(n)
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]s}
authorization: {mode: Webhook}
tlsCertFile: %[3]s
tlsPrivateKeyFile: %[4]s
containerRuntimeEndpoint: unix://%[5]s
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: %[6]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
clusterDNS: [%[7]s]
clusterDomain: cluster.local
resolvConf: %[8]s
podLogsDir: %[9]s
volumePluginDir: %[10]s
containerLogMaxSize: 20Mi
containerLogMaxFiles: 3
maxPods: 200
serializeImagePulls: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: false
evictionHard:
  memory.available: 50Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
nodeStatusUpdateFrequency: 4s
nodeLeaseDurationSeconds: 16
syncFrequency: 10s
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 100
eventBurst: 200
registryPullQPS: 0
healthzBindAddress: 127.0.0.1
healthzPort: 10248
logging:
  verbosity: 2
`, c.NodeIP(n), c.Path(CACert),
		c.NodeDir(node, "kubelet.crt"), c.NodeDir(node, "kubelet.key"),
		c.ContainerdSocket(node), c.NodeCgroup(node), c.Bridge(),
		c.NodeDir(node, "resolv.conf"), PodLogs, c.NodeDir(node, "flexvolume"))
}

// Kubelet returns the arguments of a node's kubelet.
func Kubelet(c instance.Config, n int) []string {
	node := instance.NodeName(n)
	return []string{
		"--config=" + c.NodeDir(node, "kubelet.yaml"),
		"--kubeconfig=" + c.NodeDir(node, "kubelet.kubeconfig"),
		"--root-dir=" + KubeletRoot,
		"--cert-dir=" + c.NodeDir(node, "kubelet-certs"),
		"--hostname-override=" + node,
		"--node-ip=" + instance.ForStacks(c.Instance, func(i instance.Instance) netip.Addr { return i.NodeIP(n) }),
		"--node-labels=topology.kubernetes.io/region=local,topology.kubernetes.io/zone=" + instance.Zone(n),
	}
}

// KubeProxy is the configuration of a kube-proxy. Besides the nodes, the
// cluster's outer network has one, so that the host reaches Services. They are all on
// one machine, and each sync starts nft: at Kubernetes' default of one second, that took
// 8 % of the processor time of the end-to-end tests.
func KubeProxy(c instance.Config, node, kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %s}
hostnameOverride: %s
clusterCIDR: %s
bindAddress: %q
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0}
nftables: {minSyncPeriod: 2s}
`, kubeconfig, node, instance.ForStacks(c.Instance, instance.Instance.Pods), wildcard(c.Instance))
}
