// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var foundWithin = regexp.MustCompile(`(?m)^Found within: \d+ seeds$`)

// TestMutantsApply checks that the code still has what each mutant takes away. That the
// simulation finds them is checked by hack/simulate -mutants, which builds each.
func TestMutantsApply(t *testing.T) {
	patches, err := filepath.Glob("mutants/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("patches %q, %v", patches, err)
	}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		if !foundWithin.Match(text) {
			t.Errorf("%s does not say within how many seeds it is found", patch)
		}
		var code, before string
		hunks := 0
		end := func() {
			if before != "" && strings.Count(code, before) != 1 {
				t.Errorf("%s: its code is not there, or not once:\n%s", patch, before)
			}
			before = ""
		}
		for line := range strings.Lines(string(text)) {
			switch file, ok := strings.CutPrefix(line, "+++ b/"); {
			case ok:
				end()
				text, err := os.ReadFile(filepath.Join("../..", strings.TrimSpace(file)))
				if err != nil {
					t.Fatal(err)
				}
				code = string(text)
			case strings.HasPrefix(line, "--- "):
			case strings.HasPrefix(line, "@@"):
				end()
				hunks++
			case hunks > 0 && (line[0] == ' ' || line[0] == '-'):
				before += line[1:]
			}
		}
		end()
		if hunks == 0 {
			t.Errorf("%s changes nothing", patch)
		}
	}
}
