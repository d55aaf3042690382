// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hint writes the commands that messages recommend.
package hint

import "strings"

// Kubectl returns a command of kubectl in a namespace. The command names the namespace,
// because people copy it: without, it can reach a cluster of the same name elsewhere.
func Kubectl(namespace string, args ...string) string {
	return "kubectl " + strings.Join(args, " ") + " -n " + namespace
}

// Etcd returns a command of the plugin in a namespace.
func Etcd(namespace string, args ...string) string {
	return Kubectl(namespace, append([]string{"etcd"}, args...)...)
}
