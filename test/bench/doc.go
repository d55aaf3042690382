// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the operator's durations on the local Kubernetes, and its cost when
// idle.
//
// Times depend on the machine, so the results are multiples of two units that the same run
// measures in turns with the rest. U is one bare etcd pod from apply to Ready. S is a
// hand-written StatefulSet of three members. Backups need no Kubernetes, and their results are
// ratios to the two halves of a backup. The measurements have the build tag bench; hack/bench
// runs them.
package bench
