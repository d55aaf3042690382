// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// page is one page of the documentation.
type page struct {
	Source string // its path in the repository, such as doc/user/faq.md
	Path   string // its path on the site, such as doc/user/faq.html
	Title  string
	Body   template.HTML
	// Headings are those of the second level, for the list at the side.
	Headings []heading

	markdown []byte
	document ast.Node
	anchors  map[string]bool
	sections []section
}

type heading struct{ Text, Anchor string }

// section is what a search can find: a heading with the text below it.
type section struct {
	Page    string `json:"page"` // path and anchor
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// markdown is the language of the pages: that of GitHub, without HTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithRendererOptions(html.WithXHTML()),
)

// parsePage reads a page, and gives its headings the anchors that GitHub gives them.
func parsePage(source string, content []byte) (*page, error) {
	p := &page{Source: source, Path: sitePath(source), markdown: content, anchors: map[string]bool{}}
	p.document = markdown.Parser().Parse(text.NewReader(content))
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			p.addText(plain(n, content))
			continue
		}
		title := plain(h, content)
		anchor := p.anchorFor(title)
		h.SetAttributeString("id", []byte(anchor))
		switch {
		case h.Level == 1 && p.Title == "":
			p.Title = title
			anchor = ""
		case h.Level == 2:
			p.Headings = append(p.Headings, heading{title, anchor})
		}
		p.sections = append(p.sections, section{Page: p.Path + fragment(anchor), Title: p.Title, Heading: title})
	}
	if p.Title == "" {
		return nil, fmt.Errorf("%s: no heading of the first level", source)
	}
	return p, nil
}

func fragment(anchor string) string {
	if anchor == "" {
		return ""
	}
	return "#" + anchor
}

// sitePath is where a page of the repository is on the site.
func sitePath(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(source, path.Ext(source)) + ".html"
}

// addText adds what is below a heading to its section.
func (p *page) addText(words string) {
	if len(p.sections) == 0 {
		return
	}
	s := &p.sections[len(p.sections)-1]
	s.Text = strings.TrimSpace(s.Text + " " + words)
}

// anchorFor is the anchor of a heading, as GitHub chooses it. A second heading of the same text has
// a number.
func (p *page) anchorFor(title string) string {
	base := slug(title)
	anchor := base
	for i := 1; p.anchors[anchor]; i++ {
		anchor = fmt.Sprintf("%s-%d", base, i)
	}
	p.anchors[anchor] = true
	return anchor
}

func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// plain is the text of a node without markup, with a space between blocks.
func plain(node ast.Node, content []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(content))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(content))
		case *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(content))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// render writes the HTML of a page whose links lead to the site.
func (p *page) render() error {
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.markdown, p.document); err != nil {
		return fmt.Errorf("%s: %w", p.Source, err)
	}
	// A wide table scrolls by itself, and not the page with it.
	body := strings.NewReplacer("<table>", `<div class="table"><table>`, "</table>", "</table></div>").Replace(b.String())
	p.Body = template.HTML(body)
	return nil
}
