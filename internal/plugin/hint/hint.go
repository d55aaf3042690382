// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hint writes the commands that messages recommend.
package hint

import (
	"regexp"
	"slices"
	"strings"
)

// Place is where a command works.
type Place struct {
	Namespace string
	// Chosen are the flags of the user's command line that choose the Kubernetes cluster.
	Chosen []string
}

// Kubectl returns a command of kubectl in a place. The command names the namespace, and repeats the
// flags that choose the Kubernetes cluster, because people copy it: without, it can reach a cluster of
// the same name elsewhere.
func Kubectl(at Place, args ...string) string {
	words := slices.Concat([]string{"kubectl"}, args, []string{"-n", at.Namespace})
	for _, flag := range at.Chosen {
		words = append(words, quoted(flag))
	}
	return strings.Join(words, " ")
}

// Etcd returns a command of the plugin in a place.
func Etcd(at Place, args ...string) string {
	return Kubectl(at, append([]string{"etcd"}, args...)...)
}

// plain is a word that a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
