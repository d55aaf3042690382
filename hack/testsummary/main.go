// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary prints the events of `go test -json` with gotestsum's library.
// It adds what hack/test needs: it counts tests without their sub-tests, treats a
// skipped test as a failed one, and writes a digest of the failures.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reports whether all tests passed.
func run() (bool, error) {
	all := flag.Bool("all", false, "print all output as it comes, as go test -v does")
	none := flag.Bool("none", false, "succeed even if there is no test")
	file := flag.String("digest", "", "append to `FILE` why tests failed")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	why := io.Discard
	if *file != "" {
		f, err := os.OpenFile(*file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return false, fmt.Errorf("open the digest: %w", err)
		}
		defer f.Close()
		why = f
	}
	passed, failed, err := newSummary(os.Stdout, why, root, *all).read(os.Stdin)
	if err != nil {
		return false, fmt.Errorf("read the events of go test: %w", err)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0 && (passed > 0 || *none), nil
}
