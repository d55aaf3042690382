// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stores runs servers for tests that implement the APIs of S3, Google Cloud Storage,
// Azure Blob Storage and Alibaba Cloud OSS: MinIO, fake-gcs-server, Azurite, and a simulated
// OSS of our own. They are children of the test, keep their data in its temporary directory,
// and end with it. hack/stores builds absent ones.
package stores
