// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary reads the output of `go test -json` and prints what a person
// wants of it: a line for each package, all output of what failed, and the number of
// tests. It fails if a test failed or was skipped, or if there was none.
//
//	testsummary [-all] [-none] [-digest FILE] <events
//	testsummary -fit LINES <digests
//
// A digest tells why each test failed, in a few lines: of a long log there may be
// nothing but the end at hand. With -fit it prints the digests of several runs in so
// many lines at most.
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

// run tells whether all tests passed.
func run() (bool, error) {
	all := flag.Bool("all", false, "print all output as it comes, as go test -v does")
	none := flag.Bool("none", false, "it is no failure if there was no test")
	file := flag.String("digest", "", "append to `FILE` why tests failed")
	lines := flag.Int("fit", 0, "print digests, in so many `LINES` at most")
	flag.Parse()
	if *lines > 0 {
		err := fit(os.Stdin, os.Stdout, *lines)
		return err == nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	why := io.Discard
	if *file != "" {
		f, err := os.OpenFile(*file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return false, fmt.Errorf("keep why tests failed: %w", err)
		}
		defer f.Close()
		why = f
	}
	r := newReading(os.Stdout, why, root, *all)
	if err := r.read(os.Stdin); err != nil {
		return false, fmt.Errorf("read what go test prints: %w", err)
	}
	fmt.Println(r.total)
	return r.total.failed == 0 && r.total.skipped == 0 && (r.total.passed > 0 || *none), nil
}
