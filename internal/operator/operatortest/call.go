// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatortest calls the operators' programs as a shell does.
package operatortest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// Call is one call of a program, and its expected result.
type Call struct {
	Args   string // separated by spaces
	Code   int    // expected exit code
	Stdout string // expected part of the output; "": no output
	Stderr string // expected part of the errors
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
