//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/s3"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

func TestAStoreThatKnowsCRCsKeepsThoseOfParts(t *testing.T) {
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	opened, err := s3.Open(t.Context(), config(server))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	content := bytes.Repeat([]byte("etcd"), 3<<20)
	if _, err := opened.Put(t.Context(), "key", store.Upload{Body: bytes.NewReader(content), Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	head, err := server.Client().HeadObject(t.Context(), &awss3.HeadObjectInput{
		Bucket: aws.String(bucket), Key: aws.String("key"), ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum := aws.ToString(head.ChecksumCRC32C); !strings.HasSuffix(sum, "-3") {
		t.Errorf("the CRC32C of an object of three parts is %q", sum)
	}
}
