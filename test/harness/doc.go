// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness gives a test a namespace with an operator of its own on the
// local Kubernetes, handles to the etcd clusters in it, and means to break
// things: members, operators, nodes. When the test fails, it prints what one
// needs to understand the failure.
//
// The operator is deployed from the manifests in example/, as a user would, so
// that what is tested is what is shipped. The process that runs the tests must
// reach pods and Services directly and see the pods' processes, which is so on
// the local Kubernetes that hack/kube starts.
package harness
