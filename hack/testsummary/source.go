// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// sources are the files that tests were made of, each parsed once.
type sources map[string][]call

// A call is one of a method that prints.
type call struct {
	from, to int // lines
	logs     bool
}

// logs tells whether the line is one of a call of Log or Logf, and of no call by which
// a test fails. Of a file that can't be read, nothing is known.
func (s sources) logs(file string, line int) bool {
	calls, parsed := s[file]
	if !parsed {
		calls = printing(file)
		s[file] = calls
	}
	calls = slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return line < c.from || c.to < line })
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c call) bool { return !c.logs })
}

func printing(name string) []call {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var calls []call
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 { // err.Error() prints nothing
			return true
		}
		method, ok := c.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		found := call{from: files.Position(c.Pos()).Line, to: files.Position(c.End()).Line}
		switch method.Sel.Name {
		case "Log", "Logf":
			found.logs = true
			calls = append(calls, found)
		case "Error", "Errorf", "Fatal", "Fatalf", "Skip", "Skipf":
			calls = append(calls, found)
		}
		return true
	})
	return calls
}
