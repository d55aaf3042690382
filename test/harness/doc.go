// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness gives a test a namespace with an operator of its own on the local
// Kubernetes, handles to the etcd clusters in it, and means to break members, operators and
// nodes. When the test fails, it prints what explains the failure.
//
// It deploys the operator from the manifests in example/, as a user would, so that tests cover
// what is shipped. The process that runs the tests must reach pods and Services directly and
// see the pods' processes, as on the local Kubernetes of hack/kube.
package harness
