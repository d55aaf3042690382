// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
)

// Server offers backups to those who have the token, until they are withdrawn.
type Server interface {
	Offer(name, token string, b backupserver.Backup) (withdraw func())
}

// Find chooses the backup that a spec asks for and reads the whole of it, as
// selection.Find does.
type Find func(ctx context.Context, place *location.Location, spec *api.RestoreSpec, progress func(key string, read, size int64)) (selection.Verified, []string, error)

// OpenLocation opens the place in a store that a spec names. It must be closed.
type OpenLocation func(ctx context.Context, namespace string, spec *api.RestoreSpec) (*location.Location, error)

// inStores opens it in a real one.
func inStores(kube kubernetes.Interface, volumeDir string) OpenLocation {
	return func(ctx context.Context, namespace string, spec *api.RestoreSpec) (*location.Location, error) {
		return location.Open(ctx, secretsOf(kube), namespace, spec.BackupStorageType, spec.BackupSource, volumeDir)
	}
}

// secretsOf reads Secrets from an API server.
func secretsOf(kube kubernetes.Interface) location.KubeSecrets {
	return location.KubeSecrets{Kube: kube, Operator: "restore"}
}

// granted adds the remedy to an error of the API server.
func granted(err error, right string) error { return notice.Forbidden(err, "restore", right) }

// unchanged looks whether the object is still the one that was read as a whole. Times
// on record have whole seconds.
func unchanged(ctx context.Context, place *location.Location, key string, backup *api.RestoredBackup) error {
	now, err := place.Stat(ctx, key)
	switch {
	case err != nil:
		return fmt.Errorf("look at the backup: %w", err)
	case now.Size != snapshotSize(backup):
		return fmt.Errorf("%w: it has %d bytes, and had %d", backupserver.ErrReplaced, now.Size, snapshotSize(backup))
	case backup.Modified == nil || now.Modified.IsZero() || notice.Timestamp(now.Modified).Equal(notice.Timestamp(backup.Modified.Time)):
		return nil
	}
	return fmt.Errorf("%w: it was stored at %s, and the one that was read at %s", backupserver.ErrReplaced,
		now.Modified.UTC().Format(time.RFC3339), backup.Modified.UTC().Format(time.RFC3339))
}
