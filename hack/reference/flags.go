// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// flags returns the table of the flags that the files declare. kind is that of the
// objects which the program manages.
func flags(root, kind string, files []string) (string, error) {
	table := row("Flag", "Default", "Meaning") + row("---", "---", "---")
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		count := 0
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || err != nil || !isFlag(call) {
				return err == nil
			}
			count++
			var line string
			if line, err = flagRow(call, kind); err != nil {
				err = fmt.Errorf("%s: flag %d: %w", name, count, err)
			}
			table += line
			return err == nil
		})
		if err != nil {
			return "", err
		}
		if count == 0 {
			return "", fmt.Errorf("%s declares no flag", name)
		}
	}
	return table, nil
}

var declaration = regexp.MustCompile(`^(String|Bool|Int|Duration)Var$`)

// isFlag reports whether a call declares a flag, as in fs.IntVar(&o.n, "n", 1, "usage").
func isFlag(call *ast.CallExpr) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	return ok && declaration.MatchString(function.Sel.Name) && len(call.Args) == 4
}

func flagRow(call *ast.CallExpr, kind string) (string, error) {
	name, err := stringOf(call.Args[1])
	if err != nil {
		return "", err
	}
	preset, err := presetOf(call.Args[2])
	if err != nil {
		return "", err
	}
	usage, err := usageOf(call.Args[3], kind)
	if err != nil {
		return "", err
	}
	// Package flag takes a word in backquotes for the name of the value.
	return row("`-"+name+"`", preset, strings.ReplaceAll(usage, "`", "")), nil
}

// presetOf returns a flag's default as the command line has it.
func presetOf(expression ast.Expr) (string, error) {
	switch e := expression.(type) {
	case *ast.Ident:
		return "`" + e.Name + "`", nil
	case *ast.BasicLit:
		if text := strings.Trim(e.Value, "`\""); text != "" {
			return "`" + text + "`", nil
		}
		return "", nil
	case *ast.UnaryExpr:
		text, err := presetOf(e.X)
		return "`" + e.Op.String() + strings.TrimPrefix(text, "`"), err
	case *ast.BinaryExpr: // 10*time.Minute
		number, ok := e.X.(*ast.BasicLit)
		unit, ok2 := e.Y.(*ast.SelectorExpr)
		if ok && ok2 && e.Op == token.MUL {
			for name, suffix := range map[string]string{"Second": "s", "Minute": "m", "Hour": "h"} {
				if unit.Sel.Name == name {
					if _, err := time.ParseDuration(number.Value + suffix); err == nil {
						return "`" + number.Value + suffix + "`", nil
					}
				}
			}
		}
	}
	return "", fmt.Errorf("the default is no constant that is understood: %T", expression)
}

// usageOf returns what a flag is for. It may be made from the kind of objects, by
// fmt.Sprintf(format, kind).
func usageOf(expression ast.Expr, kind string) (string, error) {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return stringOf(expression)
	}
	format, err := stringOf(call.Args[0])
	if err != nil {
		return "", err
	}
	var values []any
	for _, argument := range call.Args[1:] {
		switch name, _ := argument.(*ast.Ident); {
		case name != nil && name.Name == "kind":
			values = append(values, kind)
		case name != nil && name.Name == "scope":
			values = append(values, scope)
		default:
			return "", fmt.Errorf("the usage is made from %T, which is unknown", argument)
		}
	}
	return fmt.Sprintf(format, values...), nil
}

// scope is fleet.ScopeSetting.
const scope = "etcd.database.coreos.com/scope=clusterwide"
