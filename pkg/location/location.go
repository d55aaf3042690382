// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package location opens the store that a spec names, with the credentials of its Secret. Only
// this package knows both our API and the packages of the stores.
package location

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/abs"
	"github.com/etcd-operator/etcd-operator/pkg/store/gcs"
	"github.com/etcd-operator/etcd-operator/pkg/store/oss"
	"github.com/etcd-operator/etcd-operator/pkg/store/s3"
	"github.com/etcd-operator/etcd-operator/pkg/store/volume"
)

// Kinds of errors, by the action that they need. If the store rejects its configuration, the
// error is a store.ErrConfig: the user must edit the spec or the Secret. Any other error of
// Open comes from the API server, and passes.
var (
	// ErrSpec: the spec names no place in a store. The user must edit it or, for a volume, set
	// a flag of the operator.
	ErrSpec = errors.New("the spec must be edited")
	// ErrSecret: the Secret does not exist, is not readable, or lacks a key.
	ErrSecret = errors.New("the credentials can't be read")
)

// Secrets reads Secrets. Its errors are those of the API server.
type Secrets interface {
	Get(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Location is a key or a prefix of keys in an open store. The caller must close it.
type Location struct {
	store.Store
	// Bucket is the name of the bucket or container, or "" on a volume.
	Bucket string
	// Key of an object, or the prefix of the keys of a schedule's objects.
	Key string
}

// Path returns the bucket and a key in it, as in a spec's path.
func (l *Location) Path(key string) string {
	if l.Bucket == "" {
		return key
	}
	return l.Bucket + "/" + key
}

// Open opens the store of a storage type as the spec's section describes it. It reads Secrets
// from the namespace. volumeDir is the directory of volumes, "" if there is none. Errors never
// contain a Secret's values.
func Open(ctx context.Context, secrets Secrets, namespace string, storageType api.BackupStorageType, source api.BackupSource, volumeDir string) (*Location, error) {
	o := opener{secrets: secrets, namespace: namespace, volumeDir: volumeDir}
	switch storageType {
	case api.BackupStorageTypeS3:
		return o.s3(ctx, source.S3)
	case api.BackupStorageTypeABS:
		return o.abs(ctx, source.ABS)
	case api.BackupStorageTypeGCS:
		return o.gcs(ctx, source.GCS)
	case api.BackupStorageTypeOSS:
		return o.oss(ctx, source.OSS)
	case api.BackupStorageTypeVolume:
		return o.volume(ctx, source.Volume)
	default:
		return nil, fmt.Errorf("%w: there is no storage type %q: it must be S3, ABS, GCS, OSS or Volume", ErrSpec, storageType)
	}
}

// opener opens stores for one namespace.
type opener struct {
	secrets   Secrets
	namespace string
	volumeDir string
}

func missing(section string, storageType api.BackupStorageType) error {
	return fmt.Errorf("%w: the storage type %s needs the section spec.%s, which is not there", ErrSpec, storageType, section)
}

// split splits a path into bucket and key.
func split(section, path string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(path, "/")
	if bucket == "" || key == "" || strings.Contains(bucket, ":") { // or the path is a URL
		return "", "", fmt.Errorf("%w: spec.%s.path is %q: it must be a bucket and a key, such as mybucket/etcd.backup", ErrSpec, section, path)
	}
	return bucket, key, nil
}

// at returns the location in an opened store, or the error of opening it.
func at[S store.Store](opened S, err error, bucket, key string) (*Location, error) {
	if err != nil {
		return nil, err
	}
	return &Location{Store: opened, Bucket: bucket, Key: key}, nil
}

func (o opener) s3(ctx context.Context, source *api.S3BackupSource) (*Location, error) {
	if source == nil {
		return nil, missing("s3", api.BackupStorageTypeS3)
	}
	bucket, key, err := split("s3", source.Path)
	if err != nil {
		return nil, err
	}
	cfg := s3.Config{Bucket: bucket, Endpoint: source.Endpoint, ForcePathStyle: source.ForcePathStyle}
	if source.AWSSecret != "" {
		s, err := o.secret(ctx, "spec.s3.awsSecret", source.AWSSecret)
		if err != nil {
			return nil, err
		}
		// The config may name a region only, with credentials from the environment.
		if err := s.needsOneOf("credentials", "config"); err != nil {
			return nil, err
		}
		cfg.Credentials, cfg.ConfigFile, cfg.CA = s.data["credentials"], s.data["config"], s.data["ca.crt"]
	}
	opened, err := s3.Open(ctx, cfg)
	return at(opened, err, bucket, key)
}

func (o opener) abs(ctx context.Context, source *api.ABSBackupSource) (*Location, error) {
	if source == nil {
		return nil, missing("abs", api.BackupStorageTypeABS)
	}
	container, key, err := split("abs", source.Path)
	if err != nil {
		return nil, err
	}
	s, err := o.secret(ctx, "spec.abs.absSecret", source.ABSSecret)
	if err != nil {
		return nil, err
	}
	// Without storage-key, the store uses the identity of this process.
	if err := s.needs("storage-account"); err != nil {
		return nil, err
	}
	opened, err := abs.Open(ctx, abs.Config{
		Container: container, Endpoint: source.Endpoint,
		Account: s.text("storage-account"), Key: s.text("storage-key"), Cloud: s.text("cloud"),
	})
	return at(opened, err, container, key)
}

func (o opener) gcs(ctx context.Context, source *api.GCSBackupSource) (*Location, error) {
	if source == nil {
		return nil, missing("gcs", api.BackupStorageTypeGCS)
	}
	bucket, key, err := split("gcs", source.Path)
	if err != nil {
		return nil, err
	}
	cfg := gcs.Config{Bucket: bucket, Endpoint: source.Endpoint}
	if source.GCPSecret != "" {
		s, err := o.secret(ctx, "spec.gcs.gcpSecret", source.GCPSecret)
		if err != nil {
			return nil, err
		}
		if err := s.needsOneOf("access-token", "credentials.json"); err != nil {
			return nil, err
		}
		cfg.AccessToken, cfg.CredentialsJSON = s.text("access-token"), s.data["credentials.json"]
	}
	opened, err := gcs.Open(ctx, cfg)
	return at(opened, err, bucket, key)
}

func (o opener) oss(ctx context.Context, source *api.OSSBackupSource) (*Location, error) {
	if source == nil {
		return nil, missing("oss", api.BackupStorageTypeOSS)
	}
	bucket, key, err := split("oss", source.Path)
	if err != nil {
		return nil, err
	}
	s, err := o.secret(ctx, "spec.oss.ossSecret", source.OSSSecret)
	if err != nil {
		return nil, err
	}
	if err := s.needs("accessKeyID", "accessKeySecret"); err != nil {
		return nil, err
	}
	opened, err := oss.Open(ctx, oss.Config{
		Bucket: bucket, Endpoint: source.Endpoint,
		AccessKeyID: s.text("accessKeyID"), AccessKeySecret: s.text("accessKeySecret"),
	})
	return at(opened, err, bucket, key)
}

func (o opener) volume(ctx context.Context, source *api.VolumeBackupSource) (*Location, error) {
	switch {
	case source == nil:
		return nil, missing("volume", api.BackupStorageTypeVolume)
	case !filepath.IsLocal(source.Path):
		return nil, fmt.Errorf("%w: spec.volume.path is %q: it must be a path below the volume's directory, such as example/etcd.backup", ErrSpec, source.Path)
	case o.volumeDir == "":
		return nil, fmt.Errorf("%w: the operator has no volume for backups: start it with -volume-dir, or use another storage type than %s", ErrSpec, api.BackupStorageTypeVolume)
	}
	opened, err := volume.Open(ctx, volume.Config{Root: o.volumeDir, Dir: o.namespace})
	return at(opened, err, "", source.Path)
}
