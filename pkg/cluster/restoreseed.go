// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// A seed that starts on a backup has two more init containers before check-dns.
// The operator's image has the program that fetches; only etcd's own image of the
// cluster's version has the tool that makes a data directory of a backup, and it has
// no shell. So the first leaves its program for the second to run there.
const (
	fetchContainer   = "fetch-backup"
	restoreContainer = "restore-backup"

	// The backup is on the node's disk until it is restored, also where the data is
	// in memory: both in memory would take twice as much of it.
	restoreVolume    = "restore"
	restoreMountPath = "/var/etcd-restore"
	restoreProgram   = restoreMountPath + "/etcd-operator"

	tokenVolume    = "restore-token"
	tokenMountPath = "/var/etcd-restore-token"
	tokenFile      = "token"
)

// restoreContainers are the init containers of a seed that starts on a backup. They
// also run when the pod restarts; they find then that all is done.
func restoreContainers(obj *api.EtcdCluster, policy *api.PodPolicy, p newPod, version etcd.Version, operatorImage string) []corev1.Container {
	if p.source == nil {
		return nil
	}
	fetch := corev1.Container{
		Name:  fetchContainer,
		Image: operatorImage,
		Command: []string{
			"/usr/local/bin/etcd-operator", fetchContainer,
			"-url=" + p.source.URL,
			"-token-file=" + tokenMountPath + "/" + tokenFile,
			"-size=" + strconv.FormatInt(p.source.Size, 10),
			"-sha256=" + p.source.SHA256,
			"-dir=" + restoreMountPath,
			"-data-dir=" + dataDir,
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: restoreVolume, MountPath: restoreMountPath},
			{Name: tokenVolume, MountPath: tokenMountPath, ReadOnly: true},
			{Name: dataVolume, MountPath: dataMountPath, ReadOnly: true},
		},
	}
	restore := corev1.Container{
		Name:  restoreContainer,
		Image: image(&obj.Spec, version.String()),
		Command: []string{
			restoreProgram, restoreContainer,
			"-dir=" + restoreMountPath,
			"-data-dir=" + dataDir,
			"-tool=/usr/local/bin/" + version.SnapshotTool(),
			"-name=" + p.name,
			"-peer-url=" + namesOf(obj).peerURL(p.name),
			"-initial-cluster-token=" + p.token,
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: restoreVolume, MountPath: restoreMountPath},
			{Name: dataVolume, MountPath: dataMountPath},
		},
	}
	if p.source.BumpRevision > 0 {
		restore.Command = append(restore.Command, "-bump-revision="+strconv.FormatInt(p.source.BumpRevision, 10))
	}
	containers := []corev1.Container{fetch, restore}
	for i := range containers {
		containers[i].Resources = *policy.Resources.DeepCopy()
		containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		containers[i].SecurityContext = containerSecurity()
		containers[i].Env = []corev1.EnvVar{startedVariable()}
	}
	makeRoom(&containers[0].Resources, p.source.Size)
	return containers
}

// makeRoom raises a limit on ephemeral storage by what the backup takes: the kubelet
// evicts a pod whose emptyDirs and logs are larger than the largest such limit of its
// init containers, or those of its containers together.
func makeRoom(resources *corev1.ResourceRequirements, size int64) {
	const program = 128 << 20 // and a margin
	if limit, ok := resources.Limits[corev1.ResourceEphemeralStorage]; ok {
		limit.Add(*resource.NewQuantity(size+program, resource.BinarySI))
		resources.Limits[corev1.ResourceEphemeralStorage] = limit
	}
}

// restoreVolumes are those of the init containers. The Secret with the token goes
// when the restore has succeeded, and the pod must still be able to start again.
func restoreVolumes(p newPod) []corev1.Volume {
	if p.source == nil {
		return nil
	}
	return []corev1.Volume{
		{Name: restoreVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: p.source.Secret,
			Items:      []corev1.KeyToPath{{Key: api.SeedBackupTokenKey, Path: tokenFile}},
			Optional:   new(true),
		}}},
	}
}

// sourceDigest identifies a backup and the way to it; "" for none. Its first part
// identifies the backup alone.
func sourceDigest(source *api.SeedBackup) string {
	if source == nil {
		return ""
	}
	return contentDigest(restoredFrom(source)) + "-" + shortDigest(source.String())
}

// contentDigest identifies a backup.
func contentDigest(from *api.RestoredFrom) string {
	return shortDigest(string(from.RestoreUID) + " " + from.SHA256)
}

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
