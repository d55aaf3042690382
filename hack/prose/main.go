// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose checks the pages of this repository and the comments of the API types,
// which become kubectl explain, for plain language.
//
//	go -C hack/prose run . [FILE...]
//
// Files are relative to the root of the repository. Without one, prose checks every
// page and every file of the API, except those in excluded.txt. It fails for an
// excluded file that has no finding left, so that the list only shrinks.
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

// excludedFile lists the files that do not pass yet, one in each line.
const excludedFile = "hack/prose/excluded.txt"

// run checks the named files, or all of them, and reports whether it found nothing.
func run(root string, files []string, out io.Writer) (clean bool, err error) {
	var excluded []string
	if len(files) == 0 {
		if files, err = allFiles(root); err != nil {
			return false, err
		}
		if excluded, err = readExcluded(root); err != nil {
			return false, err
		}
	}
	for _, file := range excluded {
		if !slices.Contains(files, file) {
			return false, fmt.Errorf("%s names %s, which is no file to check", excludedFile, file)
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
		if slices.Contains(excluded, file) {
			if len(findings) == 0 {
				clean = false
				fmt.Fprintf(out, "%s: %s passes now; remove it from the list\n", excludedFile, file)
			}
			continue
		}
		for _, f := range findings {
			clean = false
			fmt.Fprintf(out, "%s:%d: %s\n", file, f.line, f.message)
		}
	}
	fmt.Fprintf(out, "%d files, %d of them excluded, %d sentences\n", len(files), len(excluded), sentences)
	return clean, nil
}

// checkFile returns the findings in a page or a Go file, and its number of sentences.
func checkFile(root, file string) (findings []finding, sentences int, err error) {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, 0, err
	}
	var passages []passage
	switch filepath.Ext(file) {
	case ".md":
		passages = readMarkdown(source)
	case ".go":
		if passages, err = readComments(source); err != nil {
			return nil, 0, err
		}
	default:
		return nil, 0, fmt.Errorf("%s is neither a page nor a Go file", file)
	}
	for _, p := range passages {
		findings = append(findings, check(p)...)
		sentences += len(split(p.text))
	}
	return findings, sentences, nil
}

// allFiles returns the pages and the Go files of the API, relative to the root.
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
			if hidden || slices.Contains([]string{"testdata", "node_modules", "dist"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !hidden && (filepath.Ext(name) == ".md" || isAPI(name)) {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// isAPI reports whether a file declares types of the API.
func isAPI(name string) bool {
	return strings.HasPrefix(name, "pkg/apis/") && strings.HasSuffix(name, ".go") &&
		!strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(filepath.Base(name), "zz_generated")
}

func readExcluded(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, excludedFile))
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			files = append(files, line)
		}
	}
	return files, nil
}
