// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Advised adds to an error of a store what the user must do about it, if that is known. The
// storage type and source are those with which the store was opened.
func Advised(err error, storageType api.BackupStorageType, source api.BackupSource) error {
	section := strings.ToLower(string(storageType))
	var network *net.OpError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, store.ErrNoBucket):
		return fmt.Errorf("%w: create it, or correct spec.%s.path", err, section)
	case errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrNoCredentials):
		return fmt.Errorf("%w: correct the credentials that spec.%s names, or their permissions", err, section)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the endpoint speaks http, and not https: write http:// before it, or have it speak https", err)
	case errors.As(err, &unknown) && storageType == api.BackupStorageTypeS3:
		return fmt.Errorf("%w: put the CA of the endpoint's certificate into the Secret that spec.s3.awsSecret names, as ca.crt", err)
	case namesBucketInHost(err, storageType, source):
		return fmt.Errorf("%w: the bucket is part of the host name, as on Amazon: for other stores set spec.s3.forcePathStyle to true, or correct spec.s3.endpoint", err)
	case errors.As(err, &network):
		return fmt.Errorf("%w: check that the store is up and reachable from the operator's pod, and that spec.%s.endpoint is right", err, section)
	}
	return err
}

// namesBucketInHost reports whether an unknown host is the endpoint's with the bucket before
// it. Amazon's own names exist for any bucket.
func namesBucketInHost(err error, storageType api.BackupStorageType, source api.BackupSource) bool {
	var lookup *net.DNSError
	if storageType != api.BackupStorageTypeS3 || source.S3 == nil || source.S3.ForcePathStyle || !errors.As(err, &lookup) {
		return false
	}
	bucket, _, _ := strings.Cut(source.S3.Path, "/")
	return strings.HasPrefix(lookup.Name, bucket+".") && !strings.HasSuffix(strings.TrimSuffix(lookup.Name, "."), ".amazonaws.com")
}
