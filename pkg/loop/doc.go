// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop runs the goroutine of one object. The goroutine owns the state of the object
// and makes passes over it. A newer object, a wake or a timer starts a pass. The package of
// a kind of object brings the pass, and decides how long the next one may wait.
package loop
