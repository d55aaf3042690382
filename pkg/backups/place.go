// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backups makes EtcdBackups and EtcdRestores from the EtcdBackups that a cluster
// has, and says what a restore loses. It asks nobody anything.
package backups

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Choose returns the EtcdBackup of a name, or the only one with a schedule, or the only one.
func Choose(list []api.EtcdBackup, cluster, name string) (*api.EtcdBackup, error) {
	var names []string
	var only, scheduled []*api.EtcdBackup
	for i := range list {
		b := &list[i]
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
		only = append(only, b)
		if b.Spec.Periodic() {
			scheduled = append(scheduled, b)
		}
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("no EtcdBackup %s names the EtcdCluster %s", name, cluster)
	case len(list) == 0:
		return nil, fmt.Errorf("no EtcdBackup names the EtcdCluster %s: create one (doc/backup.md)", cluster)
	case len(scheduled) == 1:
		return scheduled[0], nil
	case len(only) == 1:
		return only[0], nil
	default:
		return nil, fmt.Errorf("several EtcdBackups name the EtcdCluster %s: choose one of %s with --from", cluster, strings.Join(names, ", "))
	}
}

// Template returns the EtcdBackup whose store takes one more backup of a cluster.
func Template(list []api.EtcdBackup, cluster, name string) (*api.EtcdBackup, error) {
	if name == "" {
		list = Templates(list)
	}
	return Choose(list, cluster, name)
}

// made matches the names of what Once returns.
var made = regexp.MustCompile(`-manual-[0-9]{8}-[0-9]{6}$`)

// Templates returns the EtcdBackups that a person wrote: those of Once choose no store.
func Templates(list []api.EtcdBackup) []api.EtcdBackup {
	var written []api.EtcdBackup
	for _, b := range list {
		if !made.MatchString(b.Name) {
			written = append(written, b)
		}
	}
	return written
}

// Newer returns the EtcdBackup with the newest backup that a pick could mean, if it is
// newer than that of the EtcdBackup from; nil otherwise.
func Newer(list []api.EtcdBackup, from *api.EtcdBackup, pick Pick) *api.EtcdBackup {
	if pick.Key != "" || !pick.Moment.IsZero() {
		return nil
	}
	var newest *api.EtcdBackup
	last := Known(from, pick).Taken
	for i := range list {
		b := &list[i]
		taken := Known(b, Pick{Newest: true}).Taken
		if b.Name == from.Name || b.Status.LastSuccessDate == nil || !taken.After(last) || !pick.Before.IsZero() && taken.After(pick.Before) {
			continue
		}
		newest, last = b, taken
	}
	return newest
}

var errNoSection = errors.New("the EtcdBackup has no section for its storageType")

// at returns where a source is, with another path.
func at(source api.BackupSource, storageType api.BackupStorageType, path string) (api.BackupSource, error) {
	moved := *source.DeepCopy()
	switch {
	case storageType == api.BackupStorageTypeS3 && moved.S3 != nil:
		moved.S3.Path = path
	case storageType == api.BackupStorageTypeABS && moved.ABS != nil:
		moved.ABS.Path = path
	case storageType == api.BackupStorageTypeGCS && moved.GCS != nil:
		moved.GCS.Path = path
	case storageType == api.BackupStorageTypeOSS && moved.OSS != nil:
		moved.OSS.Path = path
	case storageType == api.BackupStorageTypeVolume && moved.Volume != nil:
		moved.Volume.Path = path
	default:
		return api.BackupSource{}, errNoSection
	}
	return moved, nil
}
