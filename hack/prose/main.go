// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose checks this repository for plain language. All rules hold for its pages
// and for the comments of the API types, which become kubectl explain. Other Go files
// must only avoid the phrases in rules.go, in their comments and their strings.
//
//	go -C hack/prose run . [FILE...]
//
// Files are relative to the root of the repository. Without one, prose checks every
// page and every Go file, except those in excluded.txt. It fails for an excluded file
// or directory that has no finding left, so that the list only shrinks.
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

// excludedFile lists what does not pass yet, one file or directory in each line. The name
// of a directory ends in a slash, and means the Go files in it, at any depth.
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
	failing := map[string]bool{} // the excluded entries with a finding
	for _, entry := range excluded {
		if !slices.ContainsFunc(files, func(file string) bool { return covers(entry, file) }) {
			return false, fmt.Errorf("%s names %s, which is no file to check", excludedFile, entry)
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
		if i := slices.IndexFunc(excluded, func(entry string) bool { return covers(entry, file) }); i >= 0 {
			failing[excluded[i]] = failing[excluded[i]] || len(findings) > 0
			continue
		}
		for _, f := range findings {
			clean = false
			fmt.Fprintf(out, "%s:%d: %s\n", file, f.line, f.message)
		}
	}
	for _, entry := range excluded {
		if !failing[entry] {
			clean = false
			fmt.Fprintf(out, "%s: %s passes now; remove it from the list\n", excludedFile, entry)
		}
	}
	fmt.Fprintf(out, "%d files, %d entries excluded, %d sentences\n", len(files), len(excluded), sentences)
	return clean, nil
}

// covers reports whether an entry of the list names a file, or a directory above it.
func covers(entry, file string) bool {
	if strings.HasSuffix(entry, "/") {
		return strings.HasPrefix(file, entry) && filepath.Ext(file) == ".go"
	}
	return entry == file
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
