//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/members"
)

// publish prints a report of what runs without Kubernetes, and writes it into its part of the document with -write.
func publish(t *testing.T, into part, release members.Release, what string, report fmt.Stringer) {
	t.Helper()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("Measured on %s: %s, etcd %s, %s. Load average at the end: %.14s.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), cpu(t), release.Version, what, load, report)
	fmt.Printf("\n%s\n", text)
	if *document {
		if err := write(filepath.Join("..", "..", "doc", "benchmarks.md"), into, text); err != nil {
			t.Error(err)
		}
	}
}
