// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// source is where the files are that the site does not contain.
const source = "https://github.com/etcd-operator/etcd-operator/blob/main/"

// resolve lets the links of a page lead to pages of the site, and to the repository for all other
// files. It returns the pictures that the page shows, and fails for a link that leads nowhere.
func (s *site) resolve(p *page) ([]string, error) {
	var pictures []string
	err := ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, err := s.target(p, string(n.Destination))
			if err != nil {
				return ast.WalkStop, fmt.Errorf("%s: the link to %s: %w", p.Source, n.Destination, err)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			picture := path.Join(path.Dir(p.Source), string(n.Destination))
			if _, err := fs.Stat(s.repository, picture); err != nil {
				return ast.WalkStop, fmt.Errorf("%s: %w", p.Source, err)
			}
			pictures = append(pictures, picture)
		}
		return ast.WalkContinue, nil
	})
	return pictures, err
}

// target is where a link of a page leads on the site.
func (s *site) target(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" {
		return link, err
	}
	to := p
	if u.Path != "" {
		name := path.Join(path.Dir(p.Source), u.Path)
		if _, err := fs.Stat(s.repository, name); err != nil {
			return "", err
		}
		if to = s.bySource[name]; to == nil {
			return source + name + fragment(u.Fragment), nil
		}
	}
	if u.Fragment != "" && !to.anchors[u.Fragment] {
		return "", fmt.Errorf("%s has no heading with the anchor %s", to.Source, u.Fragment)
	}
	if to == p {
		return fragment(u.Fragment), nil
	}
	return relative(p.Path, to.Path) + fragment(u.Fragment), nil
}

// relative is the link from a page of the site to another one.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}
