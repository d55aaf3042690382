// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 is the API group etcd.database.coreos.com/v1beta2: the
// objects that users write, their defaults and their validation.
//
// Everything in here is a pure function of the objects. Defaults are computed
// when they are needed and never written back, so that a default can improve
// with a new release without leaving old values in stored objects.
//
// +k8s:deepcopy-gen=package
// +groupName=etcd.database.coreos.com
package v1beta2
