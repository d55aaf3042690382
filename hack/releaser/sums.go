// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// sumsName is the file that sha256sum -c reads.
const sumsName = "SHA256SUMS"

// sumsOf returns the SHA-256 of each file of a directory, except those of the sums.
func sumsOf(directory string) (map[string]string, error) {
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, file := range files {
		if file.Name() == sumsName {
			continue
		}
		if sums[file.Name()], err = sumOf(filepath.Join(directory, file.Name())); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// writeSums writes the sums of all files of a directory.
func writeSums(directory string) error {
	sums, err := sumsOf(directory)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(directory, sumsName), func(w *bytes.Buffer) error {
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			fmt.Fprintf(w, "%s  %s\n", sums[name], name)
		}
		return nil
	})
}

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([^/]+)$`)

// readSums reads the sums of a release, and fails if its files differ from them.
func readSums(directory string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(directory, sumsName))
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		match := sumLine.FindStringSubmatch(lines.Text())
		if match == nil {
			return nil, fmt.Errorf("%s/%s: want lines of sha256sum, got %q", directory, sumsName, lines.Text())
		}
		sums[match[2]] = match[1]
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s/%s is empty", directory, sumsName)
	}
	found, err := sumsOf(directory)
	if err != nil {
		return nil, err
	}
	if differing := differences(sums, found); len(differing) > 0 {
		return nil, fmt.Errorf("%s: these files are not those of %s: %q", directory, sumsName, differing)
	}
	return sums, nil
}

// differences returns the names under which two lists have different sums, or one has none.
func differences(a, b map[string]string) []string {
	var names []string
	for name, sum := range a {
		if b[name] != sum {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check compares two runs: their files must be those of their sums, and the sums must agree.
func check(a, b string, out io.Writer) error {
	first, err := readSums(a)
	if err != nil {
		return err
	}
	second, err := readSums(b)
	if err != nil {
		return err
	}
	if differing := differences(first, second); len(differing) > 0 {
		return fmt.Errorf("%s and %s differ in %q", a, b, differing)
	}
	fmt.Fprintf(out, "%s and %s have the same %d files\n", a, b, len(first))
	return nil
}
