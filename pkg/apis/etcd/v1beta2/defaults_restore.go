// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Path is that of the storage type's section, "" without one.
func (s *RestoreSpec) Path() string { return s.BackupSource.Path(s.BackupStorageType) }

// Newest reports whether the restore chooses the newest good backup of a schedule.
func (s *RestoreSpec) Newest() bool { return s.Pick == RestorePickNewest }

// EffectiveOldVolumes is the treatment of the old cluster's volumes, with its default.
func (s *RestoreSpec) EffectiveOldVolumes() OldVolumes {
	if s.OldVolumes == "" {
		return OldVolumesDeleteWhenRestored
	}
	return s.OldVolumes
}

// ClusterSpec is the template's spec. A field that no EtcdCluster has is an error.
func (t *ClusterTemplate) ClusterSpec() (ClusterSpec, error) {
	var spec ClusterSpec
	decoder := json.NewDecoder(bytes.NewReader(t.Spec.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return ClusterSpec{}, fmt.Errorf("it is no spec of an EtcdCluster: %w", err)
	}
	return spec, nil
}
