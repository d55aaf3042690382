//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/s3"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

const bucket = "backups"

func keys(id, secret string) []byte {
	return fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", id, secret)
}

// config is that of a user of MinIO.
func config(server *stores.MinIOServer) s3.Config {
	return s3.Config{
		Bucket: bucket, Endpoint: server.Endpoint, ForcePathStyle: true,
		Credentials: keys(server.AccessKey, server.SecretKey),
		ConfigFile:  []byte("[default]\nregion = " + server.Region + "\n"),
	}
}

func opener(config s3.Config) storetest.Opener {
	return func(t *testing.T) store.Store {
		opened, err := s3.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
}

func TestConformance(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	wrongKey, wrongSecret, noBucket := config(server), config(server), config(server)
	wrongKey.Credentials = keys("nobody-knows-me", server.SecretKey)
	wrongSecret.Credentials = keys(server.AccessKey, "not-the-secret-of-it")
	noBucket.Bucket = "there-is-none"
	storetest.Run(t, opener(config(server)), storetest.Options{
		Denied:              map[string]storetest.Opener{"access key": opener(wrongKey), "secret key": opener(wrongSecret)},
		NoBucket:            opener(noBucket),
		Secrets:             []string{server.SecretKey, "not-the-secret-of-it"},
		LateMetadataOfSmall: true,
		Unfinished:          func(t *testing.T) []string { return server.Unfinished(t) },
		Abandon:             func(t *testing.T, key string) { abandon(t, server, key) },
		Kill:                func(t *testing.T) { server.Kill(t) },
		Restart:             func(t *testing.T) { server.Restart(t) },
		Freeze:              func(t *testing.T) { server.Freeze(t) },
		Thaw:                func(t *testing.T) { server.Thaw(t) },
	})
}

// abandon begins an upload as a process that is killed then.
func abandon(t *testing.T, server *stores.MinIOServer, key string) {
	t.Helper()
	client := server.Client()
	begun, err := client.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.UploadPart(t.Context(), &awss3.UploadPartInput{
		Bucket: aws.String(bucket), Key: &key, UploadId: begun.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("part")),
	})
	if err != nil {
		t.Fatal(err)
	}
}
