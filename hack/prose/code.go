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
	names := documented(file)
	var passages []passage
	for _, group := range file.Comments {
		text := strings.TrimPrefix(group.Text(), names[group]+" ")
		passages = append(passages, paragraphs(files.Position(group.Pos()).Line, text)...)
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

// documented returns the names with which doc comments begin. A name is not prose.
func documented(file *ast.File) map[*ast.CommentGroup]string {
	names := map[*ast.CommentGroup]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			names[n.Doc] = n.Name.Name
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && !n.Lparen.IsValid() {
					names[n.Doc] = t.Name.Name
				}
			}
		}
		return true
	})
	return names
}
