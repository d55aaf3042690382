// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// readCode returns the passages of all comments in a Go file, and those of its strings if
// asked to: strings become errors, events, conditions, logs and the help of flags.
func readCode(source []byte, withStrings bool) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var passages []passage
	for _, group := range file.Comments {
		passages = append(passages, paragraphs(files.Position(group.Pos()).Line, group.Text())...)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			// A string without a space is a name, not prose.
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
				passages = append(passages, passage{line: files.Position(literal.Pos()).Line, text: text})
			}
		}
		return withStrings
	})
	slices.SortStableFunc(passages, func(a, b passage) int { return cmp.Compare(a.line, b.line) })
	return passages, nil
}
