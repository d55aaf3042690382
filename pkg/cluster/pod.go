// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	etcdContainer     = "etcd"
	checkDNSContainer = "check-dns"

	dataVolume    = "etcd-data"
	dataMountPath = "/var/etcd"
	dataDir       = dataMountPath + "/data"

	// nonRootUser runs etcd and check-dns: neither needs more than the data
	// volume, which an emptyDir opens to everybody.
	nonRootUser = 65532
)

// buildPod makes the pod of a member.
func buildPod(obj *api.EtcdCluster, p newPod, operatorImage string) (*corev1.Pod, error) {
	version, err := etcd.ParseVersion(p.version)
	if err != nil {
		return nil, err
	}
	n := namesOf(obj)
	labels := map[string]string{}
	if obj.Spec.Pod != nil {
		maps.Copy(labels, obj.Spec.Pod.Labels)
	}
	maps.Copy(labels, n.labels())
	labels[nodeLabel] = p.name

	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            p.name,
			Namespace:       obj.Namespace,
			Labels:          labels,
			Annotations:     map[string]string{versionAnnotation: version.String()},
			OwnerReferences: []metav1.OwnerReference{ownerOf(obj)},
		},
		Spec: corev1.PodSpec{
			Hostname:                     p.name,
			Subdomain:                    n.peerService(),
			AutomountServiceAccountToken: new(false),
			// etcd that crashes starts again in place, with its data.
			RestartPolicy:             corev1.RestartPolicyAlways,
			SecurityContext:           podSecurity(),
			TopologySpreadConstraints: softSpread(n),
			InitContainers:            []corev1.Container{checkDNS(obj, p, operatorImage)},
			Containers:                []corev1.Container{etcdProcess(obj, p, version)},
			Volumes: []corev1.Volume{{
				Name:         dataVolume,
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			}},
		},
	}, nil
}

func ownerOf(obj *api.EtcdCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(obj, api.SchemeGroupVersion.WithKind(api.EtcdClusterResourceKind))
}

func image(spec *api.ClusterSpec, version string) string {
	return spec.EffectiveRepository() + ":v" + version
}

func etcdProcess(obj *api.EtcdCluster, p newPod, version etcd.Version) corev1.Container {
	n := namesOf(obj)
	command := []string{
		"/usr/local/bin/etcd",
		"--data-dir=" + dataDir,
		"--name=" + p.name,
		"--initial-advertise-peer-urls=" + n.peerURL(p.name),
		fmt.Sprintf("--listen-peer-urls=http://0.0.0.0:%d", peerPort),
		fmt.Sprintf("--listen-client-urls=http://0.0.0.0:%d", clientPort),
		"--advertise-client-urls=" + n.clientURL(p.name),
		"--initial-cluster=" + p.initialCluster.String(),
	}
	if p.seed {
		command = append(command, "--initial-cluster-state=new", "--initial-cluster-token="+p.token)
	} else {
		command = append(command, "--initial-cluster-state=existing")
	}
	ports := []corev1.ContainerPort{
		{Name: "peer", ContainerPort: peerPort},
		{Name: "client", ContainerPort: clientPort},
	}
	if version.HasMetricsListener() {
		command = append(command, fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", metricsPort))
		ports = append(ports, corev1.ContainerPort{Name: "metrics", ContainerPort: metricsPort})
	}
	c := corev1.Container{
		Name:    etcdContainer,
		Image:   image(&obj.Spec, version.String()),
		Command: command,
		Ports:   ports,
		Env: []corev1.EnvVar{
			{Name: maxLearnersEnv, Value: strconv.Itoa(manyLearners)},
			{Name: "ETCD_SNAPSHOT_COUNT", Value: strconv.Itoa(etcd.SnapshotCount)},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMountPath}},
		// etcd says on standard error why it ends.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
	setProbes(&c, version)
	return c
}

// maxLearnersEnv is a setting of etcd 3.6 and later; older ones don't read it.
// The environment stays when the version is changed in place.
const maxLearnersEnv = "ETCD_MAX_LEARNERS"

// checkDNS is the init container that holds etcd back until the pod's own name
// resolves: other members reach it by that name. The operator's image also waits
// until the running members expect the new one, and needs no shell for it.
func checkDNS(obj *api.EtcdCluster, p newPod, operatorImage string) corev1.Container {
	n := namesOf(obj)
	timeout := obj.Spec.EffectiveDNSTimeout()
	c := corev1.Container{
		Name:                     checkDNSContainer,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
	if busybox := busyboxImage(&obj.Spec); busybox != "" {
		c.Image = busybox
		c.Command = []string{"/bin/sh", "-c", busyboxScript, "check-dns",
			n.host(p.name), strconv.FormatInt(int64(timeout.Seconds()), 10)}
		return c
	}
	c.Image = operatorImage
	c.Command = []string{"/usr/local/bin/etcd-operator", "check-dns", "-name=" + n.host(p.name), "-timeout=" + timeout.String()}
	c.Env = []corev1.EnvVar{{
		Name:      "MY_POD_IP",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}},
	}}
	if !p.seed {
		c.Command = append(c.Command, "-data-dir="+dataDir, "-initial-cluster="+p.initialCluster.String())
		for _, u := range slices.Sorted(maps.Keys(p.initialCluster)) {
			if u != n.peerURL(p.name) {
				c.Command = append(c.Command, "-peer="+u)
			}
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMountPath, ReadOnly: true}}
	}
	return c
}

// busyboxScript waits for the name $1 to resolve, at most $2 seconds (0: for
// ever). The FQDN's trailing part comes from the search list, which nslookup of
// busybox after 1.28 ignores, so the first domain of the list is tried as well.
const busyboxScript = `
search=$(sed -n 's/^search *//p' /etc/resolv.conf)
waited=0
while :; do
  for suffix in "" $(for d in $search; do echo ".$d"; done); do
    if nslookup "$1$suffix" >/tmp/answer 2>&1 && grep -q '^Name:' /tmp/answer; then exit 0; fi
  done
  if [ "$2" -gt 0 ] && [ "$waited" -ge "$2" ]; then
    echo "$1 did not resolve within $2 s: check the cluster's DNS and the headless Service" >&2
    exit 1
  fi
  waited=$((waited + 1))
  sleep 1
done`

func busyboxImage(spec *api.ClusterSpec) string {
	if spec.Pod == nil {
		return ""
	}
	return spec.Pod.BusyboxImage
}

// softSpread asks for members on different hosts and zones without insisting.
func softSpread(n names) []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew:           1,
			TopologyKey:       key,
			WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: n.labels()},
		})
	}
	return constraints
}

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(nonRootUser)),
		RunAsGroup:     new(int64(nonRootUser)),
		FSGroup:        new(int64(nonRootUser)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
