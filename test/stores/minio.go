// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/test/environment"
)

// MinIOServer is a MinIO, which implements the API of S3.
type MinIOServer struct {
	Server
	AccessKey, SecretKey string
	// Region for which requests must be signed.
	Region string
}

// MinIO starts a MinIO with one drive and no bucket.
func MinIO(t testing.TB, options Options) *MinIOServer {
	t.Helper()
	m := &MinIOServer{AccessKey: "minio-root", SecretKey: "minio-root-password", Region: "us-east-1"}
	m.health = "/minio/health/cluster"
	path := program(t, "minio")
	start(t, &m.Server, options, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, path, "server", "--quiet",
			"--address", net.JoinHostPort(m.ip, m.port), "--console-address", net.JoinHostPort(m.ip, "0"),
			"--certs-dir", filepath.Join(m.Data, "certs"), filepath.Join(m.Data, "drive"))
		cmd.Env = environment.Bare("HOME="+m.Data,
			"MINIO_ROOT_USER="+m.AccessKey, "MINIO_ROOT_PASSWORD="+m.SecretKey,
			"MINIO_BROWSER=off", "MINIO_UPDATE=off", // does not look for newer versions
			"MINIO_CI_CD=on", // accepts a directory as a drive
		)
		return cmd
	})
	return m
}

// Client returns a client with the rights of the root user.
func (m *MinIOServer) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(m.Endpoint), UsePathStyle: true, Region: m.Region,
		Credentials: credentials.NewStaticCredentialsProvider(m.AccessKey, m.SecretKey, ""),
	})
}

// CreateBucket makes a bucket.
func (m *MinIOServer) CreateBucket(t testing.TB, name string) {
	t.Helper()
	if _, err := m.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("create the bucket %s: %v", name, err)
	}
}

// Put stores an object.
func (m *MinIOServer) Put(t testing.TB, bucket, key string, content io.ReadSeeker, metadata map[string]string) {
	t.Helper()
	_, err := m.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: content, Metadata: metadata})
	if err != nil {
		t.Fatalf("put %s into the bucket %s: %v", key, bucket, err)
	}
}

// Unfinished returns the multipart uploads of all buckets that were neither completed nor
// aborted. It reads them from the drive: MinIO's API lists only some.
func (m *MinIOServer) Unfinished(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(m.Data, "drive", ".minio.sys", "multipart", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
