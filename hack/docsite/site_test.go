// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// repository is the one of this test.
func repository() fs.FS { return os.DirFS("../..") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with is the repository with some files replaced.
type with struct {
	fs.FS
	files fstest.MapFS
}

func (w with) Open(name string) (fs.File, error) {
	if _, ok := w.files[name]; ok {
		return w.files.Open(name)
	}
	return w.FS.Open(name)
}

func TestSiteOfThisRepository(t *testing.T) {
	s, err := build(repository())
	must(t, err)
	faq := string(s.files["doc/user/faq.html"])
	for _, want := range []string{
		`<a class="name" href="../../index.html">`,
		`<a href="../../doc/user/faq.html" aria-current="page">`,
		`src="../../site.js"`,
	} {
		if !strings.Contains(faq, want) {
			t.Errorf("doc/user/faq.html lacks %s", want)
		}
	}
	if _, ok := s.files["doc/status.svg"]; !ok {
		t.Error("the picture of README.md is missing")
	}
	out := t.TempDir() + "/site"
	must(t, s.write(out))
	written, err := os.ReadFile(out + "/index.html")
	must(t, err)
	if string(written) != string(s.files["index.html"]) {
		t.Error("index.html differs on disk")
	}
	if err := s.write(out); err == nil {
		t.Error("a second site overwrites the first one")
	}
}

func TestLinks(t *testing.T) {
	tests := []struct{ link, want, err string }{
		{link: "#two", want: `href="#two"`},
		{link: "tls.md", want: `href="../doc/tls.html"`},
		{link: "user/faq.md", want: `href="../doc/user/faq.html"`},
		{link: "../README.md#what-it-does", want: `href="../index.html#what-it-does"`},
		{link: "../go.mod", want: `href="https://github.com/etcd-operator/etcd-operator/blob/main/go.mod"`},
		{link: "https://etcd.io/x", want: `href="https://etcd.io/x"`},
		{link: "#three", err: "doc/backup.md: the link to #three: doc/backup.md has no heading with the anchor three"},
		{link: "tls.md#never", err: "no heading with the anchor never"},
		{link: "never.md", err: "never.md: no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.link, func(t *testing.T) {
			// No page leads to headings of this one but its own.
			navigationOnly := fstest.MapFS{}
			for _, part := range navigation {
				for _, name := range part.paths {
					navigationOnly[name] = &fstest.MapFile{Data: []byte("# Title\n\n## What it does\n")}
				}
			}
			navigationOnly["doc/backup.md"] = &fstest.MapFile{Data: []byte("# One\n\n[a](" + tt.link + ")\n\n## Two\n")}
			s, err := build(with{repository(), navigationOnly})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %s", err, tt.err)
				}
				return
			}
			must(t, err)
			if !strings.Contains(string(s.files["doc/backup.html"]), tt.want) {
				t.Errorf("doc/backup.html lacks %s:\n%s", tt.want, s.files["doc/backup.html"])
			}
		})
	}
}

func TestAPageThatTheNavigationLacks(t *testing.T) {
	err := missingPages([]string{"doc/new.md"})
	if err == nil || !strings.Contains(err.Error(), "lacks doc/new.md; names README.md, which does not exist") {
		t.Error(err)
	}
}

func TestPage(t *testing.T) {
	p, err := parsePage("doc/x.md", []byte("# The `x` page\n\nWords & more.\n\n## A, b: c_d!\n\n- one\n- two\n\n## A, b: c_d!\n\n```sh stage\nkubectl get x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"))
	must(t, err)
	want := []section{
		{"doc/x.html", "The x page", "The x page", "Words & more."},
		{"doc/x.html#a-b-c_d", "The x page", "A, b: c_d!", "one two"},
		{"doc/x.html#a-b-c_d-1", "The x page", "A, b: c_d!", "kubectl get x a b 1 2"},
	}
	for i, s := range p.sections {
		if i >= len(want) || s != want[i] {
			t.Errorf("section %d: %+v", i, s)
		}
	}
	must(t, p.render())
	for _, want := range []string{`<h2 id="a-b-c_d-1">`, `<div class="table"><table>`, `<code class="language-sh">`} {
		if !strings.Contains(string(p.Body), want) {
			t.Errorf("no %s in\n%s", want, p.Body)
		}
	}
	if _, err := parsePage("doc/y.md", []byte("words")); err == nil {
		t.Error("a page without a title")
	}
}
