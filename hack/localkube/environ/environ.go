// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environ decides which environment variables programs get. A person's settings for
// other clusters must not reach programs of the local Kubernetes.
package environ

import (
	"fmt"
	"slices"
	"strings"
)

// Bare is the environment of the cluster's own programs: the PATH, and a home without files.
// They get all other settings as arguments. etcd, for example, exits if ETCD_NAME is set in
// addition to --name.
func Bare(environ []string) []string {
	return append(slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		return name(variable) != "PATH"
	}), "HOME=/")
}

// Go is the environment of a build for an architecture. It hides settings for another one, or
// of a workspace, whose result the cache would keep under the wrong key.
func Go(environ []string, arch string, set ...string) []string {
	return Changes{Set: append([]string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH=" + arch}, set...)}.Apply(environ)
}

// Changes are made to an environment.
type Changes struct {
	Set   []string // NAME=value
	Unset []string // NAME
}

// Apply returns the environment with the changes. It contains each changed variable once: a
// program with a duplicate variable uses the first.
func (c Changes) Apply(environ []string) []string {
	replaced := map[string]bool{}
	for _, variable := range slices.Concat(c.Set, c.Unset) {
		replaced[name(variable)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(environ), func(variable string) bool { return replaced[name(variable)] })
	return append(kept, c.Set...)
}

// Shell returns the commands with which a shell makes the changes.
func (c Changes) Shell() string {
	var text strings.Builder
	for _, variable := range c.Unset {
		fmt.Fprintf(&text, "unset %s\n", variable)
	}
	for _, variable := range c.Set {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return text.String()
}

// name is the name of a variable that is written as NAME=value or as NAME.
func name(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}
