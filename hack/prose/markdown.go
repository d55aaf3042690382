// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// passage is prose that belongs together: a paragraph, a heading, a cell of a table, or
// a comment.
type passage struct {
	line    int // of its beginning
	text    string
	wrapped bool // over several lines of a page
	heading bool
}

// code stands for a span of code, whose words are no prose.
const code = "`…`"

// readMarkdown returns the passages of a page. Blocks of code and HTML are none.
func readMarkdown(source []byte) []passage {
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	var passages []passage
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, east.KindTableCell:
			r := reader{source: source, start: -1}
			r.inline(node)
			if words := strings.TrimSpace(r.text.String()); words != "" {
				passages = append(passages, passage{
					line:    1 + bytes.Count(source[:max(r.start, 0)], []byte("\n")),
					text:    words,
					wrapped: r.wrapped,
					heading: node.Kind() == ast.KindHeading,
				})
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return passages
}

// reader collects what a block says.
type reader struct {
	source  []byte
	text    strings.Builder
	start   int // offset of the first text
	wrapped bool
}

func (r *reader) inline(parent ast.Node) {
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		switch n := node.(type) {
		case *ast.Text:
			r.begin(n)
			r.text.Write(n.Value(r.source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				r.wrapped = true
				r.text.WriteByte(' ')
			}
		case *ast.CodeSpan:
			if first, ok := n.FirstChild().(*ast.Text); ok {
				r.begin(first)
			}
			r.text.WriteString(code)
		case *ast.AutoLink:
			r.text.WriteString(code)
		case *ast.RawHTML:
			r.text.WriteByte(' ')
		default:
			r.inline(n)
		}
	}
}

func (r *reader) begin(n *ast.Text) {
	if r.start < 0 {
		r.start = n.Segment.Start
	}
}
