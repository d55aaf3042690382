// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoSignalEndsTheCleanupOfAScript(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"../../hack/*", "../../.ci/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, found...)
	}
	checked := 0
	for _, script := range scripts {
		text, _ := os.ReadFile(script) // some are directories
		if !strings.Contains(string(text), "\nexit_on_signals\n") {
			continue
		}
		checked++
		if !strings.Contains(string(text), "\nclean() {\n\tlocal status=$?\n\tundisturbed\n") || !strings.Contains(string(text), "\ntrap clean EXIT\n") {
			t.Errorf("%s: what cleans does not begin with the command undisturbed", script)
		}
	}
	if checked < 8 {
		t.Errorf("only %d scripts clean", checked)
	}
}
