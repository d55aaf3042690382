//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/stores"
)

// storeOfPage starts the store that a page's reader has, at an address of this machine that
// pods reach. It returns the environment for the page's commands.
var storeOfPage = map[string]func(t *testing.T, ip string) []string{
	"doc/backup.md":      s3Files,
	"doc/restore.md":     s3Files,
	"doc/disaster.md":    s3Files,
	"doc/user/plugin.md": s3Files,
	"doc/backup/s3.md":   s3Files,
	"doc/backup/gcs.md":  googleFiles,
	"doc/backup/abs.md":  azureAccount,
	"doc/backup/oss.md":  ossAccess,
}

// s3Files are the files of the AWS command line.
func s3Files(t *testing.T, ip string) []string {
	minio := stores.MinIO(t, stores.Options{IP: ip})
	minio.CreateBucket(t, "mybucket")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"credentials": fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", minio.AccessKey, minio.SecretKey),
		"config":      fmt.Sprintf("[default]\nregion = %s\nendpoint_url = %s\n", minio.Region, minio.Endpoint),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"AWS_DIR=" + dir}
}

// googleFiles are the key file of an account.
func googleFiles(t *testing.T, ip string) []string {
	gcs := stores.FakeGCS(t, stores.Options{IP: ip})
	gcs.CreateBucket(t, "mybucket")
	dir := t.TempDir()
	key := stores.GoogleServiceAccount(t, stores.Options{IP: ip})
	if err := os.WriteFile(filepath.Join(dir, "credentials.json"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"GCP_DIR=" + dir, "STORE_ENDPOINT=" + gcs.Endpoint}
}

func azureAccount(t *testing.T, ip string) []string {
	azure := stores.Azurite(t, stores.Options{IP: ip})
	azure.CreateContainer(t, "mycontainer")
	return []string{"AZURE_STORAGE_ACCOUNT=" + azure.Account, "AZURE_STORAGE_KEY=" + azure.Key, "STORE_ENDPOINT=" + azure.Service}
}

// ossAccess holds an AccessKey pair where Alibaba Cloud's tools look for it, and the endpoint
// of the simulated OSS.
func ossAccess(t *testing.T, ip string) []string {
	oss := stores.OSS(t, stores.Options{IP: ip}, "mybucket")
	return []string{"OSS_ACCESS_KEY_ID=" + oss.AccessKeyID, "OSS_ACCESS_KEY_SECRET=" + oss.AccessKeySecret, "OSS_ENDPOINT=" + oss.Endpoint}
}
