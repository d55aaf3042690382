// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var span = regexp.MustCompile("`[^`]*`")

// readComments returns the passages of the comments on declarations and on fields: those
// that go doc and kubectl explain show.
func readComments(source []byte) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var passages []passage
	add := func(groups ...*ast.CommentGroup) {
		for _, group := range groups {
			if group != nil {
				passages = append(passages, paragraphs(files.Position(group.Pos()).Line, group.Text())...)
			}
		}
	}
	add(file.Doc)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc, n.Comment)
		case *ast.ValueSpec:
			add(n.Doc, n.Comment)
		case *ast.Field:
			add(n.Doc, n.Comment)
		case *ast.FuncDecl:
			add(n.Doc)
			return false
		}
		return true
	})
	return passages, nil
}

// paragraphs returns the passages of a comment, without markers such as +optional, and
// without what is indented: that is code.
func paragraphs(line int, comment string) []passage {
	var passages []passage
	var current []string
	begin := line
	end := func() {
		if len(current) > 0 {
			passages = append(passages, passage{line: begin, text: span.ReplaceAllString(strings.Join(current, " "), code)})
		}
		current = nil
	}
	for words := range strings.Lines(comment) {
		words = strings.TrimRight(words, "\n")
		switch {
		case words == "" || strings.HasPrefix(words, "+") || strings.TrimLeft(words, " \t") != words:
			end()
		default:
			if len(current) == 0 {
				begin = line
			}
			current = append(current, words)
		}
		line++
	}
	end()
	return passages
}
