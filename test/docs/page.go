// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs tests the documentation: it runs every command that has a block of its own.
//
// The word behind ``` is the kind of the block:
//
//	sh        commands; run in the order of the page, in one shell for the whole page,
//	          in a namespace of the page's own on the local Kubernetes
//	sh fails  the same, but the last command has to fail
//	sh local  commands that start and end a local Kubernetes: one of their own
//	sh stage  commands that are, or are made of, stages of hack/test
//	yaml      a manifest; the API server has to accept it
//	text      what a command prints
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kinds are the allowed kinds of blocks.
var kinds = []string{"sh", "sh fails", "sh local", "sh stage", "yaml", "text"}

// block is a fenced block of a page.
type block struct {
	page string
	line int // of the text's first line
	kind string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// commands returns the lines of the block, without comments. It joins continued lines.
func (b block) commands() []string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// pages returns the pages for users and contributors, relative to root.
func pages(root string) ([]string, error) {
	list := []string{"README.md", "CONTRIBUTING.md"}
	for _, dir := range []string{"doc", "example"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".md" {
				path, err = filepath.Rel(root, path)
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// blocks reads the fenced blocks of a page.
func blocks(root, page string) ([]block, error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	var found []block
	var current *block
	for i, line := range strings.Split(string(text), "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case !fence && strings.HasPrefix(strings.TrimSpace(line), "```"):
			return nil, fmt.Errorf("%s:%d: this test reads no indented blocks: begin it at the margin", page, i+1)
		case fence && current == nil:
			current = &block{page: page, line: i + 2, kind: strings.TrimPrefix(line, "```")}
		case fence:
			found = append(found, *current)
			current = nil
		case current != nil:
			current.text += line + "\n"
		}
	}
	if current != nil {
		return nil, fmt.Errorf("%s: the block does not end", current)
	}
	return found, nil
}

// allBlocks reads the blocks of all pages, of some kinds.
func allBlocks(root string, kinds ...string) ([]block, error) {
	list, err := pages(root)
	if err != nil {
		return nil, err
	}
	var all []block
	for _, page := range list {
		found, err := blocks(root, page)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(b block) bool { return !slices.Contains(kinds, b.kind) }), nil
}
