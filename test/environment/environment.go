// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment hides a person's settings for clusters, etcd and clouds from tests and
// the programs that they start. hack/environment.sh does so for scripts.
package environment

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kept are the variables that programs need on any machine.
var kept = []string{"PATH", "TMPDIR"}

// Bare is the environment of a server that a test starts, without any variable that could
// change its settings: etcd and MinIO read all of theirs from variables.
func Bare(set ...string) []string {
	var environ []string
	for _, name := range kept {
		if value, found := os.LookupEnv(name); found {
			environ = append(environ, name+"="+value)
		}
	}
	return append(environ, set...)
}

// Forget unsets all variables with these prefixes until the test ends.
func Forget(t testing.TB, prefixes ...string) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		t.Setenv(name, "") // which sets it again when the test ends
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Number is a number that whoever runs the test may choose by a variable.
func Number(t testing.TB, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
