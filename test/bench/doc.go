// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures how long the operator takes for what it does, on the
// local Kubernetes, and what it costs when there is nothing to do.
//
// Times on one machine say little about another, so they are told as multiples
// of two units that are measured in the same run, in turns with the rest: U, one
// bare etcd pod from apply to Ready, and S, a hand-written StatefulSet of three
// members. Backups are measured without a Kubernetes, and told as ratios to the two
// halves of what they do. The measurements have the build tag bench; hack/bench runs them.
package bench
