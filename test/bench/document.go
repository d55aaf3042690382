// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strings"
)

// Between these lines the document is written by a run; the rest by people.
const (
	begin = "<!-- measured: begin (written by hack/bench -write) -->"
	end   = "<!-- measured: end -->"
)

// write replaces the measured part of a document.
func write(path, measured string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	document, err := replaceMeasured(string(text), measured)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(document), 0o644)
}

func replaceMeasured(document, measured string) (string, error) {
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the lines %q and %q must be in the document, in this order", begin, end)
	}
	return before + begin + "\n\n" + strings.TrimSpace(measured) + "\n\n" + end + after, nil
}
