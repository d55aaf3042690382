// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose checks this repository for plain language. All rules hold for its pages
// and for the comments of the API types, which become kubectl explain. Other Go files
// must only avoid the phrases in rules.go, in their comments and their strings.
//
//	go -C hack/prose run . [FILE...]
//
// Files are relative to the root of the repository. Without one, prose checks every
// page and every Go file.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "../..", "`directory` of the repository")
	flag.Parse()
	clean, err := run(*root, flag.Args(), os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "prose: %v\n", err)
		os.Exit(2)
	case !clean:
		os.Exit(1)
	}
}

// run checks the named files, or all of them, and reports whether it found nothing.
func run(root string, files []string, out io.Writer) (clean bool, err error) {
	if len(files) == 0 {
		if files, err = allFiles(root); err != nil {
			return false, err
		}
	}
	clean = true
	sentences := 0
	for _, file := range files {
		findings, count, err := checkFile(root, file)
		if err != nil {
			return false, err
		}
		sentences += count
		for _, f := range findings {
			clean = false
			fmt.Fprintf(out, "%s:%d: %s\n", file, f.line, f.message)
		}
	}
	fmt.Fprintf(out, "%d files, %d sentences\n", len(files), sentences)
	return clean, nil
}

// checkFile returns the findings in a page or a Go file, and its number of sentences.
func checkFile(root, file string) (findings []finding, sentences int, err error) {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, 0, err
	}
	var passages, code []passage
	switch filepath.Ext(file) {
	case ".md":
		passages = readMarkdown(source)
	case ".go":
		if isAPI(file) {
			if passages, err = readComments(source); err != nil {
				return nil, 0, err
			}
		}
		// The linter's own strings quote the phrases.
		if code, err = readCode(source, !strings.HasPrefix(file, "hack/prose/")); err != nil {
			return nil, 0, err
		}
	default:
		return nil, 0, fmt.Errorf("%s is neither a page nor a Go file", file)
	}
	for _, p := range passages {
		findings = append(findings, check(p)...)
		sentences += len(split(p.text))
	}
	for _, p := range code {
		for _, f := range checkPhrases(p) {
			if !slices.Contains(findings, f) { // as on a field of the API
				findings = append(findings, f)
			}
		}
		if !isAPI(file) {
			sentences += len(split(p.text))
		}
	}
	return findings, sentences, nil
}

// allFiles returns the pages and the Go files, relative to the root.
func allFiles(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		if entry.IsDir() {
			if hidden || slices.Contains([]string{"testdata", "node_modules", "dist", "generated"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		generated := strings.HasPrefix(entry.Name(), "zz_generated")
		if !hidden && !generated && slices.Contains([]string{".md", ".go"}, filepath.Ext(name)) {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// isAPI reports whether a Go file declares types of the API.
func isAPI(name string) bool {
	return strings.HasPrefix(name, "pkg/apis/") && !strings.HasSuffix(name, "_test.go")
}
