// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stores runs servers for tests that speak the protocols of S3, Google
// Cloud Storage and Azure Blob Storage: MinIO, fake-gcs-server and Azurite. They
// are children of the test, keep their data in its temporary directory, and end
// with it. hack/stores builds them where they are missing.
package stores
