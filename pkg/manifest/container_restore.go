// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// A seed that starts on a backup has two more init containers before check-dns. The operator's
// image has the program that fetches the backup. Only etcd's own image of the cluster's
// version has the tool that restores it, and no shell. So the first leaves its program for the
// second.
const (
	FetchContainer   = "fetch-backup"
	RestoreContainer = "restore-backup"
	// CheckSourceContainer, CheckToolContainer and CopyContainer take the place of FetchContainer in
	// a seed that starts on the data of a running etcd. The first one ends when that etcd sends its
	// data to the pod. The second one makes the node pull etcd's image. The third one waits until the
	// running etcd refuses all writes.
	CheckSourceContainer = "check-source"
	CheckToolContainer   = "check-tool"
	CopyContainer        = "copy-source"

	// The backup stays on the node's disk until etcd has its data, even if the data is in
	// memory. Both in memory would take twice the space.
	restoreVolume    = "restore"
	restoreMountPath = "/var/etcd-restore"
	restoreProgram   = restoreMountPath + "/etcd-operator"

	tokenVolume    = "restore-token"
	tokenMountPath = "/var/etcd-restore-token"
	tokenFile      = "token"

	sourceTLSVolume     = "source-tls"
	sourceTLSMountPath  = "/var/etcd-source/tls"
	sourceUserVolume    = "source-user"
	sourceUserMountPath = "/var/etcd-source/user"
)

// restoreContainers are the init containers of a seed that starts on a backup. They also run
// when the pod restarts, and do nothing then.
func restoreContainers(obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod, version etcd.Version, operatorImage string) []corev1.Container {
	if p.Source == nil {
		return nil
	}
	restore := corev1.Container{
		Name:  RestoreContainer,
		Image: Image(&obj.Spec, version.String(), p.LiteralTag),
		Command: []string{
			restoreProgram, RestoreContainer,
			"-dir=" + restoreMountPath,
			"-data-dir=" + dataDir,
			"-tool=/usr/local/bin/" + version.SnapshotTool(),
			"-name=" + p.Name,
			"-peer-url=" + NamesOf(obj).PeerURL(p.Name),
			"-initial-cluster-token=" + p.Token,
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: restoreVolume, MountPath: restoreMountPath},
			{Name: dataVolume, MountPath: dataMountPath},
		},
	}
	// The backup, and what it was at the revision, or what etcd makes of it with the raft entries at its end.
	room := 2 * p.Source.Size
	if p.Source.Revision > 0 {
		restore.Command = append(restore.Command, "-revision="+strconv.FormatInt(p.Source.Revision, 10))
		if p.Source.SnapshotSize > 0 {
			restore.Command = append(restore.Command, "-snapshot-size="+strconv.FormatInt(p.Source.SnapshotSize, 10))
		}
	}
	if p.Source.BumpRevision > 0 {
		restore.Command = append(restore.Command, "-bump-revision="+strconv.FormatInt(p.Source.BumpRevision, 10))
	}
	containers := append(fetchContainers(p.Source, operatorImage), restore)
	if p.Source.Copy != nil {
		check := corev1.Container{
			Name: CheckToolContainer, Image: restore.Image,
			Command:      []string{restoreProgram, CheckToolContainer, "-tool=/usr/local/bin/" + version.SnapshotTool()},
			VolumeMounts: []corev1.VolumeMount{{Name: restoreVolume, MountPath: restoreMountPath}},
		}
		containers = slices.Insert(containers, 1, check)
	}
	for i := range containers {
		containers[i].Resources = *policy.Resources.DeepCopy()
		containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		containers[i].SecurityContext = containerSecurity()
		containers[i].Env = []corev1.EnvVar{startedVariable()}
	}
	makeRoom(&containers[0].Resources, room)
	return containers
}

// fetchContainers bring the data into the pod.
func fetchContainers(source *api.SeedBackup, operatorImage string) []corev1.Container {
	if source.Copy != nil {
		return copyContainers(source.Copy, operatorImage)
	}
	return []corev1.Container{{
		Name:  FetchContainer,
		Image: operatorImage,
		Command: []string{
			"/usr/local/bin/etcd-operator", FetchContainer,
			"-url=" + source.URL,
			"-token-file=" + tokenMountPath + "/" + tokenFile,
			"-size=" + strconv.FormatInt(source.Size, 10),
			"-sha256=" + source.SHA256,
			"-dir=" + restoreMountPath,
			"-data-dir=" + dataDir,
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: restoreVolume, MountPath: restoreMountPath},
			{Name: tokenVolume, MountPath: tokenMountPath, ReadOnly: true},
			{Name: dataVolume, MountPath: dataMountPath, ReadOnly: true},
		},
	}}
}

// copyContainers copy the data of a running etcd. They read the Secrets from files: nobody sees their
// content in the pod.
func copyContainers(source *api.SeedCopy, operatorImage string) []corev1.Container {
	flags := []string{"-cluster-id=" + source.ClusterID, "-owner=" + source.Owner, "-dir=" + restoreMountPath, "-data-dir=" + dataDir}
	for _, e := range source.Endpoints {
		flags = append(flags, "-endpoint="+e)
	}
	mounts := []corev1.VolumeMount{
		{Name: restoreVolume, MountPath: restoreMountPath},
		{Name: dataVolume, MountPath: dataMountPath, ReadOnly: true},
	}
	if source.ClientTLSSecret != "" {
		flags = append(flags, "-tls-dir="+sourceTLSMountPath)
		mounts = append(mounts, corev1.VolumeMount{Name: sourceTLSVolume, MountPath: sourceTLSMountPath, ReadOnly: true})
	}
	if source.SkipVerification {
		flags = append(flags, "-skip-verification")
	}
	if source.CredentialsSecret != "" {
		flags = append(flags, "-user-dir="+sourceUserMountPath)
		mounts = append(mounts, corev1.VolumeMount{Name: sourceUserVolume, MountPath: sourceUserMountPath, ReadOnly: true})
	}
	var containers []corev1.Container
	for _, name := range []string{CheckSourceContainer, CopyContainer} {
		containers = append(containers, corev1.Container{
			Name: name, Image: operatorImage,
			Command:      append([]string{"/usr/local/bin/etcd-operator", name}, flags...),
			VolumeMounts: mounts,
		})
	}
	return containers
}

// makeRoom raises a limit on ephemeral storage by the size of the files. The kubelet evicts a pod
// whose emptyDirs and logs exceed the largest such limit of its init containers, or the sum of
// its containers' limits.
func makeRoom(resources *corev1.ResourceRequirements, size int64) {
	const program = 128 << 20 // with a margin
	if limit, ok := resources.Limits[corev1.ResourceEphemeralStorage]; ok {
		limit.Add(*resource.NewQuantity(size+program, resource.BinarySI))
		resources.Limits[corev1.ResourceEphemeralStorage] = limit
	}
}

// restoreVolumes are the volumes of the init containers. The Secrets may be gone after the restore:
// the operator deletes the one with the token. The pod must still be able to restart.
func restoreVolumes(p MemberPod) []corev1.Volume {
	if p.Source == nil {
		return nil
	}
	volumes := []corev1.Volume{{Name: restoreVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if p.Source.Copy != nil {
		for _, v := range [][2]string{{sourceTLSVolume, p.Source.Copy.ClientTLSSecret}, {sourceUserVolume, p.Source.Copy.CredentialsSecret}} {
			if v[1] != "" {
				volumes = append(volumes, corev1.Volume{Name: v[0], VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v[1], Optional: new(true)}}})
			}
		}
		return volumes
	}
	return append(volumes, corev1.Volume{
		Name: tokenVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: p.Source.Secret,
			Items:      []corev1.KeyToPath{{Key: api.SeedBackupTokenKey, Path: tokenFile}},
			Optional:   new(true),
		}},
	})
}

// SourceDigest identifies a backup and its URL, or a running etcd and how to reach it; "" for none.
// Its first part identifies only the content.
func SourceDigest(source *api.SeedBackup) string {
	if source == nil {
		return ""
	}
	if c := source.Copy; c != nil {
		return ShortDigest(c.ClusterID+" "+c.Owner) + "-" + ShortDigest(fmt.Sprintf("%+v", *c))
	}
	return ContentDigest(RestoredFrom(source)) + "-" + ShortDigest(source.String())
}

// ContentDigest identifies a backup and the revision that is restored.
func ContentDigest(from *api.RestoredFrom) string {
	text := string(from.RestoreUID) + " " + from.SHA256
	if from.Revision > 0 {
		text += " " + strconv.FormatInt(from.Revision, 10)
	}
	return ShortDigest(text)
}

// ShortDigest shortens a text for an annotation or a name.
func ShortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// RestoredFrom returns the record of a backup; nil for none. That of a running etcd is
// status.import.
func RestoredFrom(source *api.SeedBackup) *api.RestoredFrom {
	if source == nil || source.Copy != nil {
		return nil
	}
	return &api.RestoredFrom{
		Restore: source.Restore, RestoreUID: source.RestoreUID, Key: source.Key, SHA256: source.SHA256,
		EtcdRevision: source.EtcdRevision, Revision: source.Revision, BumpRevision: source.BumpRevision,
	}
}
