// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the tests of the operator on the local Kubernetes, with real etcd. They
// have the build tag e2e; hack/e2e runs them.
//
// Each test has a namespace and an operator of its own (package harness), so that tests run
// side by side, and each runs alone. The tests whose names begin with TestNode touch the
// shared nodes, and do not run in parallel with others. A test that can't do its work fails;
// it never skips.
package e2e
