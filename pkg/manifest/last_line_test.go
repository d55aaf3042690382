// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

func TestLastWords(t *testing.T) {
	for message, want := range map[string]string{
		"":                       "",
		"one\ntwo\n":             "two",
		"a\npanic: no\n\nx +0x1": "panic: no",
		`{"level":"info","msg":"x"}` + "\n" + `{"level":"fatal","msg":"discovery failed","error":"member count is unequal"}` + "\nexit": "discovery failed: member count is unequal",
		"  etcd grpc-proxy\n    Run the stateless etcd v3 gRPC L7 reverse proxy.\n":                                                     "etcd does not know one of its flags, and printed its usage; see the first lines of its log, and spec.pod.extraArgs",
		`{"level":"panic","msg":"unmarshal should never fail"}`:                                                                         "unmarshal should never fail",
	} {
		if got := failureLine(message); got != want {
			t.Errorf("of %q: %q, want %q", message, got, want)
		}
	}
	if got := failureLine(strings.Repeat("ä", 1000)); len(got) < 290 || len(got) > 310 {
		t.Errorf("%d bytes are too few, or too many for a status", len(got))
	}
}
