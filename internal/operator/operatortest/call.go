// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatortest calls the programs of the operators as a shell does.
package operatortest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// Call is a call of a program, and what is expected of it.
type Call struct {
	Args   string // separated by spaces
	Code   int    // it exits with
	Stdout string // part of what it prints; "": nothing
	Stderr string // part of what it says there
}

// Check makes the calls, outside of any pod.
func Check(t *testing.T, program func(ctx context.Context, args []string, stdout, stderr io.Writer) int, calls []Call) {
	t.Helper()
	t.Setenv("MY_POD_NAME", "")
	t.Setenv("MY_POD_NAMESPACE", "")
	for _, call := range calls {
		var stdout, stderr bytes.Buffer
		if code := program(t.Context(), strings.Fields(call.Args), &stdout, &stderr); code != call.Code {
			t.Errorf("%q: exit code %d, want %d", call.Args, code, call.Code)
		}
		if !strings.Contains(stdout.String(), call.Stdout) || call.Stdout == "" && stdout.Len() > 0 {
			t.Errorf("%q: printed %q, want %q", call.Args, stdout.String(), call.Stdout)
		}
		if !strings.Contains(stderr.String(), call.Stderr) {
			t.Errorf("%q: said %q, want %q", call.Args, stderr.String(), call.Stderr)
		}
	}
}
