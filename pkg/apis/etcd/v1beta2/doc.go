// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 is the API group etcd.database.coreos.com/v1beta2: the
// objects that users write, their defaults and their validation.
//
// All functions are pure functions of the objects. They compute defaults on demand and
// never write them to objects. A new release can therefore improve a default, and no
// stored object keeps the old one.
//
// +k8s:deepcopy-gen=package
// +groupName=etcd.database.coreos.com
package v1beta2
