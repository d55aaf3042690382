// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// CheckDNSContainer is the init container that delays etcd.
	CheckDNSContainer = "check-dns"
	// reachFlag precedes the peer URL of a member of another etcd, which has to answer before this one joins it.
	reachFlag = "-reach="
	// The file with this name is on a disk-backed volume and means that etcd was started in
	// the pod. The data may be lost while the pod stays, as in memory when its node reboots.
	startedVolume    = "check-dns"
	startedMountPath = "/var/check-dns"
	startedFile      = startedMountPath + "/started"
	// The file with this name means that a new member had no data when its pod began.
	firstFile = startedMountPath + "/first"
	// The file with this name is on the volume of a new cluster's first member, and means that the
	// member had no data when the cluster began.
	begunFile = dataDir + ".begun"
)

// checkDNS is the init container that delays etcd until the pod's own name resolves: other
// members reach it by that name. Without a launcher, the operator's image also waits until the
// running members expect the new one.
func checkDNS(obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod, operatorImage string) corev1.Container {
	n := NamesOf(obj)
	c := corev1.Container{
		Name:                     CheckDNSContainer,
		Resources:                *policy.Resources.DeepCopy(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
		VolumeMounts:             []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMountPath, ReadOnly: true}},
	}
	c.Env = []corev1.EnvVar{startedVariable()}
	if busybox := BusyboxImage(&obj.Spec); busybox != "" {
		if inMemory(policy, p) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: startedVolume, MountPath: startedMountPath})
		}
		c.Image = busybox
		c.Command = []string{"/bin/sh", "-c", busyboxScript, "check-dns",
			n.Host(p.Name), strconv.FormatInt(int64(obj.Spec.EffectiveDNSTimeout().Seconds()), 10), dataDir}
		switch {
		case p.Rejoins:
			c.Command = append(c.Command, "require-data")
		case inMemory(policy, p):
			c.Command = append(c.Command, startedFile)
		}
		return c
	}
	c.Image = operatorImage
	c.Command = append([]string{"/usr/local/bin/etcd-launcher", "check-dns"}, waitFlags(obj, p)...)
	c.Env = append(c.Env, corev1.EnvVar{
		Name:      "MY_POD_IP",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}},
	})
	switch {
	case launches(obj, p):
		c.Command = append(c.Command, "-leave="+launcherProgram)
		if p.Volume {
			c.Command = append(c.Command, "-first="+firstFile)
		}
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: startedVolume, MountPath: startedMountPath})
		for _, u := range p.Reach {
			c.Command = append(c.Command, reachFlag+u)
		}
		if len(p.Reach) > 0 && n.peerTLS {
			c.Command = append(c.Command, peerCertFlags()...)
			c.VolumeMounts = append(c.VolumeMounts, PeerCert.mount())
		}
		return c
	case p.Rejoins:
		c.Command = append(c.Command, "-require-data")
		return c
	}
	if inMemory(policy, p) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: startedVolume, MountPath: startedMountPath})
		c.Command = append(c.Command, "-started="+startedFile)
	}
	if p.Seed && p.Volume && p.Source == nil { // a restore looks for itself
		c.Command = append(c.Command, "-begun="+begunFile)
		c.VolumeMounts[0].ReadOnly = false
	}
	if joins(obj, p) {
		c.Command = append(c.Command, peerFlags(obj, p)...)
		if n.peerTLS {
			c.VolumeMounts = append(c.VolumeMounts, PeerCert.mount())
		}
	}
	return c
}

// waitFlags are the flags of check-dns for each member.
func waitFlags(obj *api.EtcdCluster, p MemberPod) []string {
	timeout := obj.Spec.EffectiveDNSTimeout()
	flags := []string{"-name=" + NamesOf(obj).Host(p.Name), "-timeout=" + timeout.String()}
	if !looksUpItself(p) {
		flags = append(flags, "-skip-name")
	}
	return append(flags, "-data-dir="+dataDir)
}

// peerFlags are the flags with which a member waits until the running members expect it.
func peerFlags(obj *api.EtcdCluster, p MemberPod) []string {
	n := NamesOf(obj)
	flags := []string{"-initial-cluster=" + p.InitialCluster.String()}
	for _, u := range slices.Sorted(maps.Keys(p.InitialCluster)) {
		if u != n.PeerURL(p.Name) {
			flags = append(flags, "-peer="+u)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(p.Addresses)) {
		flags = append(flags, "-address="+host+"="+p.Addresses[host])
	}
	if n.peerTLS {
		flags = append(flags, peerCertFlags()...)
	}
	return flags
}

// peerCertFlags are the certificate that peers demand from a caller.
func peerCertFlags() []string {
	return []string{"-peer-cert=" + PeerCert.path(PeerCert.Cert), "-peer-key=" + PeerCert.path(PeerCert.Key), "-peer-ca=" + PeerCert.path(PeerCert.CA)}
}

// joins reports whether a pod is that of a member that has to wait for others.
func joins(obj *api.EtcdCluster, p MemberPod) bool {
	others := len(p.InitialCluster)
	if _, ok := p.InitialCluster[NamesOf(obj).PeerURL(p.Name)]; ok {
		others--
	}
	return !p.Seed && !p.Rejoins && others > 0
}

func looksUpItself(p MemberPod) bool {
	v, err := etcd.ParseVersion(p.Version)
	return err != nil || v.LooksUpItself()
}

// startedVariable passes the ID of the member that has served from the pod to an init
// container. At each start of the container, the kubelet reads the annotation from the pod at
// the API server. Nothing of it is on the node's disk.
func startedVariable() corev1.EnvVar {
	return corev1.EnvVar{
		Name: startedEnv,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + StartedAnnotation + "']",
		}},
	}
}

// busyboxScript waits until the name $1 resolves, at most $2 seconds (0: forever). It fails if
// $3 must hold data and does not. It must hold data if the operator has noted that the member
// has served, or if $4 is require-data. It must also hold data if $4 is a file: the file means
// that etcd started before.
//
// The search list completes the FQDN. nslookup of busybox after 1.28 ignores the list, so the
// script also tries each of its domains. Not every image has sync; without it, the file
// reaches the disk some seconds later.
const busyboxScript = `
if ! ls "$3"/member/wal/*.wal >/dev/null 2>&1; then
  if [ -n "$MEMBER_STARTED" ] || [ "$4" = require-data ] || { [ -n "$4" ] && [ -e "$4" ]; }; then
    for d in "${3%/*}" "$3" "$3/member" "$3/member/wal"; do
      if [ -e "$d" ] && ! { [ -r "$d" ] && [ -x "$d" ]; }; then
        echo "the data in $3 belongs to $(ls -ldn "$d" | sed 's/^[^ ]* *[0-9]* *\([0-9]*\) *\([0-9]*\) .*/user \1 and group \2/'), and this pod runs as another one: the operator recreates the pod as that user, unless spec.pod.securityContext names another" >&2
        exit 1
      fi
    done
  fi
  if [ -n "$MEMBER_STARTED" ]; then
    echo "member $MEMBER_STARTED has served from this pod before, and $3 holds no data of it now: it could lose writes; delete the pod, and its PersistentVolumeClaim if it has one, so that the member is replaced" >&2
    exit 1
  elif [ "$4" = require-data ]; then
    echo "the volume holds no data of etcd in $3: a member that comes back without its data could lose writes" >&2
    exit 1
  elif [ -n "$4" ] && [ -e "$4" ]; then
    echo "etcd was started in this pod before, and $3 holds no data of it now: it could lose writes; delete the pod, so that the member is replaced" >&2
    exit 1
  fi
fi
started() {
  if [ -n "$1" ] && [ "$1" != require-data ]; then
    : >"$1" || exit 1
    sync "$1" 2>/dev/null
  fi
  exit 0
}
search=$(sed -n 's/^search *//p' /etc/resolv.conf)
waited=0
while :; do
  for suffix in "" $(for d in $search; do echo ".$d"; done); do
    if nslookup "$1$suffix" >/tmp/answer 2>&1 && grep -q '^Name:' /tmp/answer; then started "$4"; fi
  done
  if [ "$2" -gt 0 ] && [ "$waited" -ge "$2" ]; then
    echo "$1 did not resolve within $2 s: check the cluster's DNS and the headless Service" >&2
    exit 1
  fi
  waited=$((waited + 1))
  sleep 1
done`

// BusyboxImage returns the spec's image for the init container; "" for the operator's.
func BusyboxImage(spec *api.ClusterSpec) string {
	if spec.Pod == nil {
		return ""
	}
	return spec.Pod.BusyboxImage
}

// startedEnv is the environment variable with the note for init containers:
// datadir.StartedEnv.
const startedEnv = "MEMBER_STARTED"
