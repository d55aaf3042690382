// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Once returns an EtcdBackup that is made once, now, in the store of another one. Its key
// is none that retention of the other one counts.
func Once(like *api.EtcdBackup, now time.Time) (*api.EtcdBackup, error) {
	stamp := now.UTC().Format("20060102-150405")
	source, err := at(like.Spec.BackupSource, like.Spec.StorageType, like.Spec.Path()+"-manual-"+stamp)
	if err != nil {
		return nil, fmt.Errorf("EtcdBackup %s: %w", like.Name, err)
	}
	spec := *like.Spec.DeepCopy()
	spec.BackupSource = source
	// A log and a test follow a schedule.
	spec.BackupPolicy, spec.Continuous, spec.RestoreTest = nil, nil, nil
	if p := like.Spec.BackupPolicy; p != nil && p.TimeoutInSecond > 0 {
		spec.BackupPolicy = &api.BackupPolicy{TimeoutInSecond: p.TimeoutInSecond}
	}
	const longest = 253
	name := like.Name
	if room := longest - len("-manual-") - len(stamp); len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-manual-" + stamp, Namespace: like.Namespace},
		Spec:       spec,
	}, nil
}
