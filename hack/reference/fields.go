// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// api is what the types declare.
type api struct {
	structs map[string]*ast.StructType
	// values are the constants of each type, in their order.
	values map[string][]value
}

type value struct{ text, doc string }

func readAPI(dir string) (*api, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	a := &api{structs: map[string]*ast.StructType{}, values: map[string][]value{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "zz_generated") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					a.add(spec)
				}
			}
		}
	}
	return a, nil
}

func (a *api) add(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if structure, ok := s.Type.(*ast.StructType); ok {
			a.structs[s.Name.Name] = structure
		}
	case *ast.ValueSpec:
		if kind, ok := s.Type.(*ast.Ident); ok && len(s.Values) == 1 {
			if text, err := stringOf(s.Values[0]); err == nil {
				a.values[kind.Name] = append(a.values[kind.Name], value{text, s.Doc.Text()})
			}
		}
	}
}

// fields returns the table of the fields of a struct, and of the structs in it.
func (a *api) fields(structure string) (string, error) {
	rows, err := a.rows(structure, "")
	return row("Field", "Meaning") + row("---", "---") + rows, err
}

func (a *api) rows(structure, prefix string) (string, error) {
	declared, ok := a.structs[structure]
	if !ok {
		return "", fmt.Errorf("there is no type %s", structure)
	}
	var rows strings.Builder
	for _, field := range declared.Fields.List {
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return "", err
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		doc := withoutMarkers(field.Doc.Text())
		if name == "" || doc == "" {
			return "", fmt.Errorf("a field of %s has no name or no comment: %q, %q", structure, name, doc)
		}
		rows.WriteString(row("`"+prefix+name+"`", doc))
		inner, list := element(field.Type)
		if _, ok := a.structs[inner]; ok {
			path := prefix + name + "."
			if list {
				path = prefix + name + "[]."
			}
			nested, err := a.rows(inner, path)
			if err != nil {
				return "", err
			}
			rows.WriteString(nested)
		}
	}
	return rows.String(), nil
}

// element returns the name of a type of this package, or of the elements of a list.
func element(expression ast.Expr) (name string, list bool) {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name, false
	case *ast.StarExpr:
		return element(e.X)
	case *ast.ArrayType:
		name, _ = element(e.Elt)
		return name, true
	}
	return "", false
}

// withoutMarkers drops the lines of a comment that are for generators.
func withoutMarkers(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// meaning is how the comment on a constant begins.
var meaning = regexp.MustCompile(`^\w+ means that (\S)`)

// phases returns the table of the constants of a type.
func (a *api) phases(kind string) (string, error) {
	if len(a.values[kind]) == 0 {
		return "", fmt.Errorf("there are no constants of type %s", kind)
	}
	table := row("Phase", "Meaning") + row("---", "---")
	for _, v := range a.values[kind] {
		begin := meaning.FindStringSubmatch(v.doc)
		if begin == nil {
			return "", fmt.Errorf("the comment on the %s %q does not begin with its name and \"means that\": %q", kind, v.text, v.doc)
		}
		name := "empty"
		if v.text != "" {
			name = "`" + v.text + "`"
		}
		table += row(name, strings.ToUpper(begin[1])+v.doc[len(begin[0]):])
	}
	return table, nil
}

func stringOf(expression ast.Expr) (string, error) {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", fmt.Errorf("%T is no text", expression)
	}
	return strconv.Unquote(literal.Value)
}
